import { describe, expect, it } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { silentLog } from '../log/log.ts'
import { createLastUsed } from './last-used.ts'

const statements: string[] = []
const test = await serviceForFile({
  trusted_proxies: ['127.0.0.1'],
  onStatement: (text) => statements.push(text),
})

type Stamp = { last_used_at: string | null; last_used_ip: string | null }
const stampOf = async (id: string): Promise<Stamp> =>
  (await test.service.app.db.first<Stamp>(sql`
    select last_used_at, last_used_ip from api_token where id = ${id}`)) as Stamp
const stampsWritten = () => statements.filter((text) => text.includes('set last_used_at')).length
const flush = () => test.service.app.lastUsed.flush()

describe('the last use of a token', () => {
  it('is shown with time and address, and written once for a thousand requests', async () => {
    const ada = await test.account()
    const { id, headers } = await tokenOf(test, ada)
    const before = stampsWritten()
    const use = (ip: string) => test.service.call('account_verify', {}, { headers, ip })
    for (let i = 0; i < 10; i++) await Promise.all(Array.from({ length: 100 }, () => use('192.0.2.1')))
    await flush()
    const first = await stampOf(id)
    expect(first).toEqual({ last_used_at: expect.stringMatching(/Z$/), last_used_ip: '192.0.2.1' })
    await use('192.0.2.2')
    await flush()
    expect(await stampOf(id)).toEqual(first)
    expect(stampsWritten() - before).toBe(1)
    expect(await ada.client.account_token_list()).toMatchObject({ tokens: [first] })
  })

  it('has the canonical address of the client, not of its proxy', async () => {
    const { id, headers } = await tokenOf(test, await test.account())
    await rpc(test.url, call('account_verify'), { ...headers, 'x-forwarded-for': '::FFFF:192.0.2.7' })
    await flush()
    expect((await stampOf(id)).last_used_ip).toBe('192.0.2.7')
  })

  it('counts if the scope refuses the method, but not if the token is invalid', async () => {
    const ada = await test.account()
    const narrow = await tokenOf(test, ada, { kind: 'methods', methods: ['cell_get'] })
    const expired = await tokenOf(test, ada)
    await test.service.app.db.run(
      sql`update api_token set expires_at = date_trunc('milliseconds', now()) where id = ${expired.id}`,
    )
    for (const { headers } of [narrow, expired])
      await test.service.call('account_verify', {}, { headers }).catch(() => {})
    await flush()
    expect((await stampOf(narrow.id)).last_used_at).not.toBeNull()
    expect((await stampOf(expired.id)).last_used_at).toBeNull()
  })

  it('is updated at once if it is from before the clock of the database was set back', async () => {
    const { id, headers } = await tokenOf(test, await test.account())
    await test.service.app.db.run(sql`
      update api_token set last_used_at = now() + interval '1 hour', last_used_ip = '192.0.2.3' where id = ${id}`)
    await test.service.call('account_verify', {}, { headers, ip: '192.0.2.4' })
    await flush()
    expect((await stampOf(id)).last_used_ip).toBe('192.0.2.4')
  })

  it('is updated at most once a minute, even with several nodes', async () => {
    const { id } = await tokenOf(test, await test.account())
    const node = async (ip: string) => {
      const lastUsed = createLastUsed(test.service.app.db, silentLog)
      lastUsed.stamp(id, ip)
      await lastUsed.flush()
      return (await stampOf(id)).last_used_ip
    }
    const age = (by: string) =>
      test.service.app.db.run(sql`
        update api_token set last_used_at = now() - ${by}::interval where id = ${id}`)
    expect(await node('192.0.2.1')).toBe('192.0.2.1')
    expect(await node('192.0.2.2')).toBe('192.0.2.1')
    await age('59 seconds')
    expect(await node('192.0.2.3')).toBe('192.0.2.1')
    await age('61 seconds')
    expect(await node('192.0.2.4')).toBe('192.0.2.4')
  })

  it('delays no request, however long it takes', async () => {
    const { id, headers } = await tokenOf(test, await test.account())
    const other = await rival(test.databaseUrl)
    await other.begin('select from api_token where id = $1 for update', [id])
    const use = () => test.service.call('account_verify', {}, { headers, ip: '192.0.2.1' })
    await use()
    const written = flush()
    await other.blocks(1)
    await use()
    expect((await stampOf(id)).last_used_at).toBeNull()
    await other.commit()
    await written
    expect((await stampOf(id)).last_used_at).not.toBeNull()
    await other.close()
  })

  it('is only logged if it cannot be written', async () => {
    const { log, lines } = capturedLog()
    const lastUsed = createLastUsed(test.service.app.db, log)
    lastUsed.stamp('tok_\0', '192.0.2.1')
    await lastUsed.flush()
    expect(lines()).toMatchObject([{ level: 'warn', msg: 'the last use of tokens could not be recorded' }])
  })
})
