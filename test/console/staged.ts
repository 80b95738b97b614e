import type { BrowserContext } from 'playwright-core'

/** The time on the page's clock, and shortly before it the time at which the data were made. */
const shown = Date.parse('2026-11-22T09:10:00Z')
const made = Date.parse('2026-11-22T09:00:00Z')
const began = Date.now()
const quarter = 900_000

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const time = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g
const standIns = new Map<string, string>()
const originals = new Map<string, string>()

export function standInOf(id: string): string {
  const known = standIns.get(id)
  if (known) return known
  // Numbers that look like ids, in the order in which the pages meet them.
  const n = standIns.size + 1
  const digits = (seed: number, length: number): string =>
    Math.floor(((n * seed) % 0.9999) * 16 ** length)
      .toString(16)
      .padStart(length, '0')
  const made = `${digits(0.618034, 8)}-${digits(0.317, 4)}-4${digits(0.71, 3)}-a${digits(0.13, 3)}-${digits(0.414214, 12)}`
  standIns.set(id, made)
  originals.set(made, id)
  return made
}
const toShown = (text: string): string =>
  text
    .replace(uuid, standInOf)
    .replace(time, (at) =>
      new Date(made + Math.round((Date.parse(at) - began) / quarter) * quarter).toISOString(),
    )
const toReal = (text: string): string =>
  text
    .replace(uuid, (id) => originals.get(id) ?? id)
    .replace(time, (at) => new Date(began + Date.parse(at) - made).toISOString())

/** Gives the pages of a browser the same ids, times and clock in each run. */
export async function stage(context: BrowserContext): Promise<void> {
  await context.clock.setFixedTime(shown)
  await context.route('**/api/**', async (route) => {
    const request = route.request()
    const postData = request.postData()
    const response = await route.fetch(postData ? { postData: toReal(postData) } : {})
    // The pages take the time of the server for the present.
    const headers = { ...response.headers(), date: new Date(shown).toUTCString() }
    await route.fulfill({ response, headers, body: toShown(await response.text()) })
  })
}
