import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { removeRows, writeRows } from '../../test/helpers/audit-streams.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { cuttingProxy } from '../../test/helpers/cutting-proxy.ts'
import { exportAudit } from '../audit-log/audit_export.ts'
import { type TestService, testService } from '../testing/index.ts'
import { type AuditStreamItem, auditStream } from './audit-stream.ts'
import { createClient } from './client.ts'

// A client waits a random time before it reconnects; keep it short here.
beforeEach(() => void vi.spyOn(Math, 'random').mockReturnValue(0.02))
afterEach(() => void vi.restoreAllMocks())

async function started() {
  const log = capturedLog()
  const test = await testService({ audit_stream: true, log: log.log })
  onTestFinished(() => test.close())
  const admin = await test.account({ roles: ['admin'] })
  const { headers, id } = await tokenOf(test, admin)
  const proxy = await cuttingProxy(test.url)
  onTestFinished(() => proxy.close())
  return { test, admin, headers, token_id: id, proxy, log }
}

async function newest({ service }: TestService): Promise<number> {
  let last = 0
  for await (const row of await exportAudit(service.app)) last = row.seq
  return last
}

async function take(items: AsyncIterator<AuditStreamItem>, count: number): Promise<AuditStreamItem[]> {
  const taken: AuditStreamItem[] = []
  while (taken.length < count) taken.push((await items.next()).value as AuditStreamItem)
  return taken
}

describe('auditStream', () => {
  it('yields the rows behind a position, each once and in order, over connections that are lost', async () => {
    const { test, admin, headers, proxy } = await started()
    const lost: (number | null)[] = []
    const reached: number[] = []
    let opened = 0
    const items = auditStream({
      ...{ url: proxy.url, headers, after: 0 },
      opened: () => {
        opened += 1
      },
      lost: ({ after, wait_ms }) => wait_ms >= 0 && lost.push(after),
    })
    const seqs: number[] = []
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 5 }, () => admin.client.cell_create({ data: {} })))
      const last = await newest(test)
      while ((seqs.at(-1) ?? 0) < last)
        for (const item of await take(items, 1)) seqs.push((item as { seq: number }).seq)
      reached.push(last)
      expect(proxy.cut()).toBeGreaterThan(0)
    }
    expect([opened, lost]).toEqual([4, reached.slice(0, 3)])
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    await items.return(undefined as never)
  })

  it('yields what the server sends of a row, and its number', async () => {
    const { test, headers } = await started()
    await writeRows(test, 1)
    const after = (await newest(test)) - 1
    const [item] = await take(auditStream({ url: test.url, headers, after }), 1)
    expect(item).toMatchObject({
      type: 'event',
      seq: after + 1,
      method: 'note',
      params: { seq: after + 1, event_type: 'note', metadata: { n: 1 } },
    })
  })

  it('begins now without a position; a connection lost before the first row loses none', async () => {
    const { test, headers, proxy } = await started()
    await writeRows(test, 3)
    const items = auditStream({ url: proxy.url, headers })
    const placed = proxy.carried('event: gap')
    const first = take(items, 2)
    await placed
    proxy.cut()
    const last = await newest(test)
    await writeRows(test, 2)
    expect(await first).toMatchObject([
      { type: 'event', seq: last + 1 },
      { type: 'event', seq: last + 2 },
    ])
  })

  it('takes over the session or the narrow token of a client', async () => {
    const { test, admin } = await started()
    await writeRows(test, 1)
    const after = (await newest(test)) - 1
    const { token } = await tokenOf(test, admin, { kind: 'methods', methods: ['audit_log_list'] })
    const clients = [
      createClient({ url: `${test.url}/`, token }),
      createClient({ url: test.url, jar: admin.cookie }),
    ]
    for (const client of clients)
      expect(await take(auditStream(client, { after }), 1)).toMatchObject([{ type: 'event', seq: after + 1 }])
  })

  it('says where retention has left a gap', async () => {
    const { test, headers } = await started()
    await writeRows(test, 5)
    const last = await newest(test)
    await removeRows(test, last - 1)
    expect(await take(auditStream({ url: test.url, headers, after: 1 }), 2)).toMatchObject([
      { type: 'gap', after: 1, resumed_after: last - 1 },
      { type: 'event', seq: last },
    ])
  })

  it('continues on another node when one shuts down', async () => {
    const { test, headers, proxy } = await started()
    const node = await testService({ audit_stream: true, database_url: test.databaseUrl })
    onTestFinished(() => node.close())
    const last = await newest(test)
    const items = auditStream({ url: proxy.url, headers, after: last })
    await writeRows(test, 1)
    expect(await take(items, 1)).toMatchObject([{ seq: last + 1 }])
    proxy.lead(node.url)
    test.service.leave('draining')
    await writeRows(test, 1)
    expect(await take(items, 1)).toMatchObject([{ seq: last + 2 }])
  })

  it('ends with the reason when its authority is gone, and the rows before it are yielded', async () => {
    const { test, admin, headers, token_id } = await started()
    const last = await newest(test)
    const items = auditStream({ url: test.url, headers, after: last })
    await writeRows(test, 1)
    expect(await take(items, 1)).toMatchObject([{ seq: last + 1 }])
    await admin.client.account_token_revoke({ token_id })
    expect(await take(items, 1)).toMatchObject([{ method: 'token_revoke' }])
    await expect(items.next()).rejects.toMatchObject({
      name: 'AuditStreamError',
      reason: 'revoked',
      status: null,
    })
    expect(await items.next()).toEqual({ done: true, value: undefined })
  })

  it('ends with the refusal of a request that would be refused again', async () => {
    const { test } = await started()
    const user = await test.account()
    const open = (headers: Record<string, string>, path?: string) =>
      auditStream({ url: test.url, headers, ...(path && { path }) }).next()
    await expect(open({})).rejects.toMatchObject({ reason: 'authentication_required', status: 401 })
    await expect(open({ cookie: user.cookie })).rejects.toMatchObject({
      reason: 'insufficient_permissions',
      status: 403,
    })
    await expect(open({}, '/nowhere')).rejects.toMatchObject({
      message: 'the audit stream ended: not_found (status 404)',
      reason: 'not_found',
      status: 404,
    })
  })

  it('leaving the loop closes the connection; an aborted signal ends it with its reason', async () => {
    const { test, headers, log } = await started()
    await writeRows(test, 3)
    for await (const item of auditStream({ url: test.url, headers, after: 0 }))
      if (item.type === 'event') break
    const ended = () =>
      log.lines().flatMap(({ msg, reason }) => (msg === 'audit stream ended' ? [reason] : []))
    await expect.poll(ended).toEqual(['client_left'])
    const host = new AbortController()
    const items = auditStream({ url: test.url, headers, after: await newest(test), signal: host.signal })
    await writeRows(test, 1)
    await take(items, 1)
    const next = items.next()
    host.abort(new Error('enough'))
    await expect(next).rejects.toThrow('enough')
    await expect.poll(ended).toEqual(['client_left', 'client_left'])
  })

  it('ends at once when `lost` aborts its signal', async () => {
    // No pause ever ends.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const host = new AbortController()
    const items = auditStream({
      url: 'http://127.0.0.1:1',
      fetch: () => Promise.reject(new Error('unreachable')),
      signal: host.signal,
      lost: () => host.abort(new Error('given up')),
    })
    await expect(items.next()).rejects.toThrow('given up')
  })
})
