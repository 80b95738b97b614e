import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { serviceForFile } from '../test/helpers/service.ts'
import { query } from './core/declare.ts'
import { scenario } from './testing/index.ts'

const visit = query({
  doc: 'Says from where the caller comes.',
  auth: { account: 'none', actor: 'none' },
  rate_limit: 'ip',
  rate_limit_group: 'visits',
  output: z.object({ ip: z.string() }),
  handler: async (_input, { ip }) => ({ ip }),
})
const test = await serviceForFile({ actions: { visit } })
const { service } = test
const from = (ip?: string) => service.call('visit' as string, {}, { ip })

/** As Node names the peers of a server that listens on `::`. */
const byNode = (ip: string) => `::ffff:${ip}`

describe('the headers of a call', () => {
  /** The `Headers` of another implementation, as an application may have besides those of Node. */
  class OtherHeaders {
    readonly #lines: [string, string][]
    constructor(lines: [string, string][]) {
      this.#lines = lines
    }
    [Symbol.iterator]() {
      return this.#lines.values()
    }
  }

  it('are read in every form of the Fetch standard, so that the caller does not become anonymous', async () => {
    const { id, cookie } = await test.account()
    const lines: [string, string][] = [['Cookie', cookie]]
    for (const headers of [lines, new OtherHeaders(lines), new Headers(lines), Object.fromEntries(lines)])
      expect(await service.call('account_verify', {}, { headers: headers as never })).toMatchObject({ id })
  })

  it('are refused as one text', async () => {
    const { cookie } = await test.account()
    await expect(service.call('account_verify', {}, { headers: cookie as never })).rejects.toThrow(TypeError)
  })
})

it('refuses an operator call for an actor or account that is no UUID', async () => {
  const call = (by: object) => () =>
    service.operations.addActor({ account_id: crypto.randomUUID(), name: 'x' }, { via: 'x', ...by })
  for (const key of ['actor_id', 'account_id'])
    await scenario(
      test,
      () => expect(call({ [key]: 'ada' })()).rejects.toThrow(`\`${key}\` must be a UUID`),
      {},
    )
})

describe('an address that the code of the embedder passes', () => {
  it('is taken in its canonical form', async () => {
    expect(await from(byNode('203.0.113.7'))).toEqual({ ip: '203.0.113.7' })
    expect(await from('2001:DB8:0:0::1')).toEqual({ ip: '2001:db8::1' })
    expect(await from('fe80::1%eth0')).toEqual({ ip: 'fe80::1' })
    expect(await from(undefined)).toEqual({ ip: '127.0.0.1' })
  })

  it('gives each visitor a bucket of his own, however Node names him', async () => {
    const spent = Array.from({ length: 600 }, () => from(byNode('198.51.100.1')))
    await Promise.all(spent)
    await expect(from('198.51.100.1')).rejects.toMatchObject({ reason: 'rate_limited' })
    expect(await from(byNode('198.51.100.2'))).toEqual({ ip: '198.51.100.2' })
  })

  it('is recorded in its canonical form', async () => {
    const ada = await test.account()
    const by = { via: 'company_login', ip: byNode('203.0.113.8') }
    const audit = [{ event_type: 'login', ip: '203.0.113.8' }]
    await scenario(test, () => service.sessions.create({ account_id: ada.id, ...by }), { audit })
    await scenario(
      test,
      () =>
        service.transaction({ event: 'cell_create', ...by }, async (work) => {
          work.audit('cell_delete', { cell_id: ada.id })
        }),
      { audit: [{ event_type: 'cell_delete', ip: '203.0.113.8' }] },
    )
  })

  it('is refused if it is not one address', async () => {
    const headers = { cookie: (await test.account()).cookie }
    for (const ip of ['', 'nowhere', 7 as never, '203.0.113.7:80', '203.0.113.7, 10.0.0.1', '[::1]']) {
      const attempts = [
        () => service.call('cell_create', { data: {} }, { headers, ip }),
        () => service.operations.addActor({ account_id: crypto.randomUUID(), name: 'x' }, { via: 'x', ip }),
        () => service.transaction({ event: 'cell_create', ip }, async () => 'done'),
      ]
      const refused = { message: `\`ip\` must be one IP address, without a port; "${ip}" is none.` }
      for (const attempt of attempts)
        await scenario(test, () => expect(attempt()).rejects.toMatchObject(refused), {})
    }
  })
})
