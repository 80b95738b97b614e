import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'

/** Presses End until this many rows of a list are loaded. */
export async function allLoaded(page: Page, rows: number): Promise<void> {
  const loaded = () =>
    page.evaluate(() => Number(document.querySelector('.loaded')?.textContent?.replace(/\D/g, '')))
  while ((await loaded()) < rows) {
    await page.keyboard.press('End')
    await sleep(20)
  }
}

/** The same, then until the end is on screen: rows that turn out higher than expected move it away. */
export async function toTheEnd(page: Page, rows: number): Promise<void> {
  await allLoaded(page, rows)
  const isShown = () =>
    page.evaluate(
      () => (document.querySelector('.loaded')?.getBoundingClientRect().bottom ?? 0) < innerHeight,
    )
  do {
    await page.keyboard.press('End')
    await sleep(200)
  } while (!(await isShown()))
}
