import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { consoleForFile, person } from './browser.ts'

const test = await consoleForFile({ roles: [{ name: 'editor', grant_paths: ['admin'] }] })

/** The spacing that a reader may set: WCAG 1.4.12. */
const space = (page: Page): Promise<void> =>
  page.evaluate(() => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(
      '* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important }',
    )
    document.adoptedStyleSheets = [sheet]
  })

/** Words that go over two lines, and texts that their box cuts off. */
const damaged = (page: Page, within: string): Promise<string[]> =>
  page.evaluate((within) => {
    const found: string[] = []
    const words = new Intl.Segmenter('en', { granularity: 'word' })
    const range = document.createRange()
    const walker = document.createTreeWalker(document.querySelector(within) as Element, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.textContent ?? ''
      const box = (node.parentElement as Element).closest('.text') ?? (node.parentElement as Element)
      if (!box.checkVisibility() || box.closest('.hidden-text, .id, code')) continue
      if (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX === 'clip')
        found.push(`cut: ${text}`)
      if (box.scrollHeight > box.clientHeight + 3 && getComputedStyle(box).overflowY === 'clip')
        found.push(`cut: ${text}`)
      if (box.closest('.tree')) continue
      for (const { segment, index, isWordLike } of words.segment(text)) {
        if (!isWordLike) continue
        range.setStart(node, index)
        range.setEnd(node, index + segment.length)
        const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
        if (lines.size > 1) found.push(`broken: ${segment}`)
      }
    }
    return found
  }, within)

it('with more space in the text a narrow window breaks no word and cuts nothing off', async () => {
  const ada = await test.account({ username: 'ada', roles: ['admin', 'editor'] })
  const grace = await test.account({ username: 'grace' })
  await ada.client.role_grant_offer_create({ to_account_id: grace.id, role: 'editor' })
  const { offers } = await grace.client.role_grant_offer_list({})
  await grace.client.role_grant_offer_accept({ offer_id: offers[0]?.offer_id as string })
  const { events } = await ada.client.audit_log_list({ event_types: ['role_grant_offer_accept'], limit: 1 })
  expect(Object.keys(events[0]?.metadata ?? {})).toContain('role_grant_id')
  const page = await person(test, ada.cookie, { width: 320, height: 640 })
  for (const path of ['status', 'me', 'me/security', `people/${grace.id}`, `audit/${events[0]?.seq}`]) {
    await page.goto(`/admin/${path}`)
    await page.locator('main h1').waitFor()
    await page.waitForFunction(() => !document.querySelector('main [aria-busy=true], main .skeleton'))
    await space(page)
    expect.soft(await damaged(page, 'main'), path).toEqual([])
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect.soft(overflow, path).toBeLessThanOrEqual(0)
  }
})
