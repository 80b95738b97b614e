import type { Page } from 'playwright-core'
import { expect, it, onTestFinished } from 'vitest'
import { sql } from '../../src/db/db.ts'
import { type TestProvider, testProvider } from '../helpers/oidc.ts'
import { codeOf, guarded } from '../helpers/totp.ts'
import { check, look, person } from './browser.ts'
import { hasFocus, press } from './keys.ts'
import { serviceOnLocalhost } from './passkeys.ts'

type Person = Parameters<TestProvider['authorize']>[1]

/** The provider is another site than http://localhost, as in production: no strict cookie is sent on the way back. */
async function withProvider() {
  const corp = await testProvider()
  onTestFinished(() => corp.close())
  const oidc = [corp.entry({ label: 'Corp', on_unknown: 'invite_only' })]
  // An invite is claimed only by its token.
  const test = await serviceOnLocalhost({ oidc, invite_claim: 'code' })
  return { corp, test }
}

/** What the provider shows this person: a link that leads back. */
const answerAs = (page: Page, { corp, url, who }: { corp: TestProvider; url: string; who: Person }) =>
  page.route(`${corp.issuer}/auth**`, (route) => {
    const back = `${url}/admin/callback/corp?${corp.authorize(route.request().url(), { ...who, auth_time: Math.floor(Date.now() / 1000) })}`
    return route.fulfill({
      contentType: 'text/html',
      body: `<!doctype html><html lang="en"><title>Corp</title><a href="${back.replaceAll('&', '&amp;')}">Continue</a>`,
    })
  })

async function signIn(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign in with Corp' }).click()
  await page.getByRole('link', { name: 'Continue' }).click()
}

const ada = { sub: 'ada', email: 'ada@corp.example', email_verified: true, preferred_username: 'ada' }

it('signs in and reauthenticates with a provider, asks for the second factor, and explains refusals', async () => {
  const { corp, test } = await withProvider()
  const known = await guarded(test, { username: 'ada' })
  const page = await person(test, undefined, { visits: corp.issuer })
  const referers: (string | undefined)[] = []
  page.on('request', (request) => referers.push(request.headers().referer))
  await answerAs(page, { corp, url: test.url, who: ada })

  await page.goto('/sign-in')
  await signIn(page)
  await page.getByText('No account is linked to this identity').waitFor()
  expect(page.url()).toBe(`${test.url}/admin/callback/corp`)
  await look(page, 'callback-refused')
  await page.getByRole('link', { name: 'Go back' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()

  const [name = '', value = ''] = known.cookie.split('=')
  await page.context().addCookies([{ name, value, url: test.url }])
  await page.goto('/admin/me/security')
  await link(page)
  await look(page, 'security-linked')
  await page.getByRole('button', { name: 'Unlink Corp' }).click()
  await check(page, 'provider unlinked')
  await page.keyboard.press('Escape')
  const unlink = async (): Promise<void> => {
    await press(page.getByRole('button', { name: 'Unlink Corp' }))
    await hasFocus(page.getByRole('button', { name: 'Cancel' }))
    await press(page.getByRole('dialog').getByRole('button', { name: 'Unlink' }))
  }
  await unlink()
  // The button and its row are gone, so the heading gets the focus.
  await hasFocus(page.getByRole('heading', { name: 'My account' }))
  await link(page)
  expect((await known.client.account_sign_in_get()).links).toMatchObject([{ provider: 'corp' }])

  await test.service.app.db.run(sql`update auth_session set authenticated_at = now() - interval '2 days'`)
  await unlink()
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
  await signIn(page)
  await page.getByRole('button', { name: 'Use a recovery code' }).click()
  await page.getByLabel('Recovery code').fill(known.recovery_codes[0] ?? '')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/admin/me/security')
  const { client } = await test.signIn(known.id)
  const methods = async () => (await client.account_session_list()).sessions.map((one) => one.methods)
  expect(await methods()).toContainEqual(['oidc', 'recovery_code'])

  await page.context().clearCookies()
  await page.goto('/sign-in')
  await signIn(page)
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await page.getByLabel('Authenticator code').fill(codeOf(known.secret))
  await page.keyboard.press('Enter')
  await page.waitForURL('**/admin')
  expect(await methods()).toContainEqual(['oidc', 'totp'])

  expect(referers.filter((one) => one?.includes('code='))).toEqual([])
  expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toMatch(
    /code|state/,
  )
  await page.goBack()
  expect(page.url()).not.toContain('code=')
})

/** Links the identity to the signed-in account, by keys only. */
async function link(page: Page): Promise<void> {
  await press(page.getByRole('button', { name: 'Link Corp', exact: true }))
  await press(page.getByRole('link', { name: 'Continue' }))
  await page.getByRole('button', { name: 'Unlink Corp' }).waitFor()
}

it('the link of an invite makes an account, with a password or with a provider', async () => {
  const { corp, test } = await withProvider()
  const admin = await test.account({ username: 'root', roles: ['admin'] })
  const invited = async (email: string): Promise<string> => {
    const { link } = await admin.client.invite_create({ email, reveal: true })
    return `/admin/link${new URL(link ?? '').hash}`
  }
  const page = await person(test, undefined, { visits: corp.issuer })
  await page.goto(await invited('grace@corp.example'))
  await page.getByRole('heading', { name: 'You are invited' }).waitFor()
  expect(page.url()).toBe(`${test.url}/admin/link`)
  expect(await page.getByLabel('E-mail').inputValue()).toBe('grace@corp.example')
  await look(page, 'link-invite')
  await page.getByLabel('Username').fill('grace')
  await page.getByLabel('Password', { exact: true }).fill('another long password')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.waitForURL('**/admin')

  const other = await person(test, undefined, { visits: corp.issuer })
  await answerAs(other, { corp, url: test.url, who: ada })
  await other.goto(await invited('ada@corp.example'))
  await signIn(other)
  await other.waitForURL('**/admin')
  const { accounts } = await admin.client.admin_account_list()
  expect(accounts.map(({ account }) => account.username).sort()).toEqual(['ada', 'grace', 'root'])
  expect((await admin.client.invite_list()).invites.every(({ claimed_at }) => claimed_at !== null)).toBe(true)
})
