import type { Page } from 'playwright-core'

/** Holds back the answers to a method; `letGo` sends them on, or this refusal in their place. */
export async function holdBack(page: Page, method: string) {
  const { promise, resolve: letGo } = Promise.withResolvers<object | undefined>()
  const { promise: isAnswered, resolve: answered } = Promise.withResolvers<void>()
  await page.route('**/api/rpc', async (route) => {
    const sent = route.request().postDataJSON() as { id: number; method: string }
    if (sent.method !== method) return route.continue()
    const response = await route.fetch()
    const data = await promise
    if (!data) {
      await route.fulfill({ response })
      return answered()
    }
    const error = { code: -32000, message: 'no', data }
    await route.fulfill({ status: 503, json: { jsonrpc: '2.0', id: sent.id, error } })
    answered()
  })
  return { letGo, isAnswered }
}
