import type { Locator, Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { codeOf, guarded } from '../helpers/totp.ts'
import { consoleForFile, person } from './browser.ts'

const test = await consoleForFile({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })

/** Presses Tab until this has the focus; wherever the focus stops on the way it is on screen and has a ring. */
async function tabTo(of: Locator): Promise<void> {
  await of.waitFor()
  const { keyboard } = of.page()
  for (let presses = 0; presses < 60; presses++) {
    await keyboard.press('Tab')
    const stop = await of.evaluate((own) => {
      const at = document.activeElement as HTMLElement
      // After the last stop comes the browser itself; an editor and the parts of a field for times have rings of their own;
      // a heading that a new page has just given the focus to is no stop.
      if (!at.matches(':focus') || at === document.body || at.shadowRoot || at.tabIndex < 0)
        return { isHere: false, isShown: true, what: '' }
      const rings = [at, at.closest('label') ?? at].map((one) => getComputedStyle(one).outlineStyle)
      rings.push(getComputedStyle(at, '::after').outlineStyle)
      const { top, bottom } = at.getBoundingClientRect()
      const isShown = rings.some((ring) => ring !== 'none') && bottom > 0 && top < innerHeight
      const name = at.ariaLabel || at.innerText || at.id
      return { isHere: at === own, isShown, what: `${name}: ${rings}, ${top} to ${bottom} of ${innerHeight}` }
    })
    expect(stop.isShown, stop.what).toBe(true)
    if (stop.isHere) return
  }
  throw new Error(`Tab does not come to ${of}`)
}
const press = async (of: Locator, key: 'Enter' | 'Space' = 'Enter'): Promise<void> => {
  await tabTo(of)
  await of.page().keyboard.press(key)
}
const fill = async (of: Locator, text: string): Promise<void> => {
  await tabTo(of)
  await of.page().keyboard.type(text)
}
/** Which element has the focus, where it should be this one. */
const hasFocus = (of: Locator) =>
  expect
    .poll(
      () =>
        of.evaluate((own) => {
          const at = document.activeElement as HTMLElement
          return own === at || `${at.tagName} ${at.innerText?.slice(0, 50)}`
        }),
      { message: `focus on ${of}` },
    )
    .toBe(true)
const isSomewhere = (page: Page) =>
  expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY')

it('by keyboard alone: signing in, a cell, sharing, a role offered and accepted, a token, the audit log', async () => {
  const ada = await guarded(test, { username: 'ada', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace' })
  const page = await person(test)
  const { keyboard } = page
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true })
  const link = (name: string) => page.getByRole('link', { name, exact: true })
  const title = (name: string, on = page) => on.getByRole('heading', { name, level: 1 })
  const dialog = page.getByRole('dialog')

  await page.goto('/sign-in')
  await fill(page.getByLabel('Username or e-mail'), 'ada')
  await fill(page.getByLabel('Password', { exact: true }), ada.password)
  await keyboard.press('Enter')
  await fill(page.getByLabel('Code of your authenticator'), codeOf(ada.secret))
  await keyboard.press('Enter')
  await title('Home').waitFor()

  await press(link('Cells'))
  await hasFocus(title('Cells'))
  await press(button('New cell'))
  await dialog.waitFor()
  await keyboard.press('Escape')
  await hasFocus(button('New cell'))
  await keyboard.press('Enter')
  await fill(dialog.getByLabel('Label'), 'Plan')
  await keyboard.press('Enter')
  await hasFocus(title('Plan'))
  await press(button('Edit'), 'Space')
  await page.getByRole('textbox', { name: 'JSON of the cell' }).waitFor()
  await expect
    .poll(() => page.evaluate(() => document.activeElement?.shadowRoot?.activeElement != null))
    .toBe(true)
  await keyboard.press('Control+a')
  await keyboard.insertText('{"label": "Guide"}')
  await keyboard.press('Escape')
  await press(button('Review changes'))
  await press(button('Save changes'))
  await title('Guide').waitFor()
  await isSomewhere(page)

  await press(button('More actions'))
  await hasFocus(page.getByRole('menuitem').first())
  await keyboard.press('ArrowDown')
  await keyboard.press('ArrowUp')
  await keyboard.press('Enter')
  await dialog.waitFor()
  await keyboard.press('Escape')
  await hasFocus(button('More actions'))
  await press(link('Share'))
  await fill(page.getByRole('combobox', { name: 'Name' }), 'gra')
  await page.getByRole('option', { name: 'grace' }).waitFor()
  await keyboard.press('Enter')
  await press(button('Share'))
  await page.getByText('Shared.').waitFor()
  expect((await grace.client.cell_list({})).cells).toHaveLength(1)

  await press(link('People'))
  await press(link('grace'))
  await hasFocus(title('grace'))
  await press(button('Give role'))
  await tabTo(page.getByRole('combobox', { name: 'Role' }))
  await keyboard.type('editor')
  await fill(page.getByLabel('Note'), 'Please')
  await press(button('Offer editor'))
  await page.getByText('grace was offered editor.').waitFor()
  await hasFocus(button('Give role'))

  const hers = await person(test, grace.cookie)
  await hers.goto('/admin/inbox')
  const decline = hers.getByRole('button', { name: 'Decline editor' })
  await press(decline, 'Space')
  await hers.getByRole('dialog').waitFor()
  await hers.keyboard.press('Escape')
  await hasFocus(decline)
  await press(hers.getByRole('button', { name: 'Accept editor' }))
  await hers.getByText('No offers').waitFor()
  // The button is gone.
  await hasFocus(title('Inbox', hers))

  await press(link('My account'))
  await hasFocus(title('My account'))
  await press(link('Tokens'))
  await press(button('New token'))
  await fill(dialog.getByLabel('Name'), 'deploy-bot')
  await press(button('Create token'))
  await hasFocus(button('Copy'))
  await keyboard.press('Escape')
  await hasFocus(dialog.getByRole('heading', { level: 2 }))
  await press(button('Go back'))
  await hasFocus(dialog.getByRole('heading', { level: 2 }))
  await press(dialog.getByLabel('I have stored it'), 'Space')
  await press(button('Done'))
  await hasFocus(button('New token'))
  await press(button('Revoke deploy-bot'))
  await hasFocus(button('Cancel'))
  await press(dialog.getByRole('button', { name: 'Revoke deploy-bot' }))
  await page.getByText('No tokens').waitFor()
  await isSomewhere(page)

  await press(link('Audit log'))
  await hasFocus(title('Audit log'))
  const row = page.getByRole('row').nth(1).getByRole('link').first()
  await press(row)
  await page.getByRole('heading', { level: 1, name: /^Event/ }).waitFor()
  await isSomewhere(page)
})
