import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Presses Tab until this element has the focus; each stop on the way must be on screen and have a ring. */
export async function tabTo(of: Locator): Promise<void> {
  await of.waitFor()
  const { keyboard } = of.page()
  for (let presses = 0; presses < 60; presses++) {
    await keyboard.press('Tab')
    const stop = await of.evaluate((own) => {
      const at = document.activeElement as HTMLElement
      // Exempt: the browser itself, after the last stop; an editor and the parts of a time field, which have rings of
      // their own; a heading that a new page has just focused, which is not a stop.
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
export const press = async (of: Locator, key: 'Enter' | 'Space' = 'Enter'): Promise<void> => {
  await tabTo(of)
  await of.page().keyboard.press(key)
}
export const fill = async (of: Locator, text: string): Promise<void> => {
  await tabTo(of)
  await of.page().keyboard.type(text)
}
/** Types a local time in one go, given as `2027-06-01T09:00`. */
export async function fillTime(of: Locator, text: string): Promise<void> {
  await tabTo(of)
  const [year, month = '', day = '', hour = '', minute = ''] = text.split(/\D/)
  const { keyboard } = of.page()
  const clock = `${String(Number(hour) % 12 || 12).padStart(2, '0')}${minute}${Number(hour) < 12 ? 'A' : 'P'}`
  await keyboard.type(`${month}${day}${year}${clock}`)
  await expect.poll(() => of.inputValue()).toBe(text)
}
/** Asserts that this element has the focus, or shows which one has. */
export const hasFocus = (of: Locator) =>
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
/** Asserts that the focus is not lost. */
export const isSomewhere = (page: Page) =>
  expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY')
