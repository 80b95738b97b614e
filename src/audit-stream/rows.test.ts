import { describe, expect, it, onTestFinished } from 'vitest'
import {
  openStream,
  removeRows,
  type StreamBlock,
  signalRows,
  writeRows,
} from '../../test/helpers/audit-streams.ts'
import { exportAudit } from '../audit-log/audit_export.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestOptions, type TestService, testService } from '../testing/index.ts'

async function started(options: TestOptions = {}): Promise<{ test: TestService; admin: TestAccount }> {
  const test = await testService({ audit_stream: true, ...options })
  onTestFinished(() => test.close())
  return { test, admin: await test.account({ roles: ['admin'] }) }
}

/** Numbers the rows in the log and returns the highest number. */
async function newest(test: TestService): Promise<number> {
  let last = 0
  for await (const row of await exportAudit(test.service.app)) last = row.seq
  return last
}

const ids = (blocks: StreamBlock[]): number[] => blocks.map(({ id }) => id)
const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe('rows on the audit stream', () => {
  it('a row is one block of id and data, with exactly the eleven keys in their order', async () => {
    const { test, admin } = await started()
    const stream = await openStream(test, { cookie: admin.cookie })
    const { cell } = await admin.client.cell_create({ data: {} })
    expect(await stream.next()).toBe(': connected')
    const [row] = await stream.take(1)
    const exported = []
    for await (const one of await exportAudit(test.service.app, { event_type: 'cell_create' }))
      exported.push(one)
    expect(row?.text).toBe(
      `retry: 3000\nid: ${row?.id}\ndata: ${JSON.stringify({ method: 'cell_create', params: exported[0] })}`,
    )
    expect(Object.keys(row?.data.params as object)).toEqual(
      'id seq event_type outcome actor_id account_id target_account_id target_actor_id ip created_at metadata'.split(
        ' ',
      ),
    )
    expect(row?.data.params).toMatchObject({ actor_id: admin.actor_id, metadata: { cell_id: cell.id } })
  })

  it('the retry line is in the first block after the opening and in no other', async () => {
    const { test, admin } = await started()
    const stream = await openStream(test, { cookie: admin.cookie })
    await writeRows(test, 3)
    const blocks = await stream.take(3)
    expect(blocks.map(({ text }) => text.startsWith('retry: 3000\n'))).toEqual([true, false, false])
    expect(stream.text().match(/retry/g)).toHaveLength(1)
  })

  it('a line break in metadata breaks no line; types that nobody registered are sent as they are', async () => {
    const { test, admin } = await started()
    const stream = await openStream(test, { cookie: admin.cookie })
    await test.service.app.db.run(sql`
      insert into audit_inbox (event_type, outcome, metadata)
      values ('of.a/consumer', 'failure', ${JSON.stringify({ text: 'one\r\ntwo\u2028three' })}::jsonb)`)
    const [row] = await stream.take(1)
    expect(row?.text.split('\n')).toHaveLength(3)
    expect(row?.data).toMatchObject({
      method: 'of.a/consumer',
      params: { metadata: { text: 'one\r\ntwo\u2028three' } },
    })
  })

  it('without a position it begins now: what was written before is not sent', async () => {
    const { test, admin } = await started()
    await writeRows(test, 5)
    const stream = await openStream(test, { cookie: admin.cookie })
    const { cell } = await admin.client.cell_create({ data: {} })
    const [first] = await stream.take(1)
    expect(first?.data).toMatchObject({ method: 'cell_create', params: { metadata: { cell_id: cell.id } } })
  })

  it('commits in the reverse order of writing are sent as they became visible, none lost', async () => {
    const { test, admin } = await started()
    const { db } = test.service.app
    const stream = await openStream(test, { cookie: admin.cookie })
    const write = (name: string) =>
      sql`insert into audit_inbox (event_type, outcome) values (${name}, 'success')`
    await db.transaction(async (first) => {
      await first.run(write('written-first'))
      // From another connection, which commits before this one.
      await db.run(write('committed-first'))
      signalRows(test)
      const [row] = await stream.take(1)
      expect(row?.data.method).toBe('committed-first')
    })
    const [second] = await stream.take(1)
    expect(second?.data.method).toBe('written-first')
  })

  it('rows written without a signal arrive all the same', async () => {
    const { test, admin } = await started()
    const stream = await openStream(test, { cookie: admin.cookie })
    await writeRows(test, 1)
    expect(await stream.take(1)).toMatchObject([{ data: { method: 'note' } }])
  })

  it('resumes behind Last-Event-ID: 1000 rows once each, and then what comes', async () => {
    const { test, admin } = await started()
    const before = await openStream(test, { cookie: admin.cookie })
    await writeRows(test, 1)
    const [last] = await before.take(1)
    before.leave()
    const position = last?.id as number
    await writeRows(test, 1000)
    const stream = await openStream(
      test,
      { cookie: admin.cookie, 'last-event-id': String(position) },
      '?after=0',
    )
    expect(ids(await stream.take(1000))).toEqual(range(position + 1, position + 1000))
    await writeRows(test, 1)
    expect(ids(await stream.take(1))).toEqual([position + 1001])
  })

  it('?after counts where there is no header, with 0 the whole log', async () => {
    const { test, admin } = await started()
    await writeRows(test, 10)
    const last = await newest(test)
    const stream = await openStream(test, { cookie: admin.cookie }, '?after=0')
    expect(ids(await stream.take(last))).toEqual(range(1, last))
  })

  it('replay and live join without a seam while others write', async () => {
    const { test, admin } = await started()
    await writeRows(test, 2000)
    const writing = Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let round = 0; round < 25; round++) await admin.client.cell_create({ data: {} })
      }),
    )
    const streams = await Promise.all(
      ['?after=0', '?after=1000', '?after=1999'].map((query) =>
        openStream(test, { cookie: admin.cookie }, query),
      ),
    )
    await writing
    const last = await newest(test)
    for (const [index, after] of [0, 1000, 1999].entries())
      expect(ids((await streams[index]?.take(last - after)) ?? [])).toEqual(range(after + 1, last))
  })
})

describe('gaps', () => {
  it('rows after the position that retention removed are one gap; the stream goes on behind it', async () => {
    const { test, admin } = await started()
    await writeRows(test, 20)
    const last = await newest(test)
    await removeRows(test, last - 5)
    const stream = await openStream(test, { cookie: admin.cookie }, '?after=3')
    expect(await stream.next()).toBe(': connected')
    expect(await stream.next()).toBe(
      `retry: 3000\nevent: gap\nid: ${last - 5}\ndata: {"after":3,"resumed_after":${last - 5}}`,
    )
    expect(ids(await stream.take(5))).toEqual(range(last - 4, last))
  })

  it('rows that retention removed are a gap also right after another stream has read them', async () => {
    const { test, admin } = await started()
    await writeRows(test, 20)
    const last = await newest(test)
    const replay = () => openStream(test, { cookie: admin.cookie }, '?after=0')
    expect(ids(await (await replay()).take(last))).toEqual(range(1, last))
    await removeRows(test, last - 5)
    const [gap, ...rows] = await (await replay()).take(6)
    expect(gap).toMatchObject({ event: 'gap', data: { after: 0, resumed_after: last - 5 } })
    expect(ids(rows)).toEqual(range(last - 4, last))
  })

  it('goes on behind the gap also where retention left rows of lower numbers', async () => {
    const { test, admin } = await started()
    await writeRows(test, 20)
    const last = await newest(test)
    await test.service.app.db.run(sql`
      with gone as (delete from audit_log where seq = ${last - 5} returning seq)
      update audit_position set removed_seq = (select seq from gone)`)
    const stream = await openStream(test, { cookie: admin.cookie }, '?after=3')
    const [gap, ...rows] = await stream.take(6)
    expect(gap).toMatchObject({ event: 'gap', data: { after: 3, resumed_after: last - 5 } })
    expect(ids(rows)).toEqual(range(last - 4, last))
  })

  it('a position at or behind the highest removed row has no gap', async () => {
    const { test, admin } = await started()
    await writeRows(test, 20)
    const last = await newest(test)
    await removeRows(test, last - 5)
    const stream = await openStream(test, { cookie: admin.cookie }, `?after=${last - 5}`)
    expect(ids(await stream.take(5))).toEqual(range(last - 4, last))
  })

  it('numbers that were never given are no gap', async () => {
    const { test, admin } = await started()
    await test.service.app.db.run(sql`update audit_position set seq = 100`)
    await writeRows(test, 2)
    const stream = await openStream(test, { cookie: admin.cookie }, '?after=0')
    const blocks = await stream.take(2)
    expect(blocks.map(({ event }) => event)).toEqual(['message', 'message'])
    expect(blocks[0]?.id).toBeGreaterThan(100)
  })

  it('a position in the future is one gap back to the newest row', async () => {
    const { test, admin } = await started()
    const last = await newest(test)
    const stream = await openStream(test, { cookie: admin.cookie, 'last-event-id': '9007199254740991' })
    await writeRows(test, 1)
    const blocks = await stream.take(2)
    expect(blocks[0]).toMatchObject({
      event: 'gap',
      id: last,
      data: { after: 9007199254740991, resumed_after: last },
    })
    expect(blocks[1]).toMatchObject({ event: 'message', id: last + 1 })
  })

  it('rows that go while the stream has yet to read them are a gap too', async () => {
    const { test, admin } = await started()
    await writeRows(test, 2000, 8000)
    const last = await newest(test)
    const stream = await openStream(test, { cookie: admin.cookie }, '?after=0')
    stream.pause()
    await removeRows(test, last - 1)
    stream.resume()
    const blocks: StreamBlock[] = []
    while (blocks.at(-1)?.id !== last) blocks.push(...(await stream.take(1)))
    const gap = blocks.at(-2) as StreamBlock
    expect(gap).toMatchObject({ event: 'gap', id: last - 1 })
    expect(ids(blocks.slice(0, -2))).toEqual(range(1, gap.data.after as number))
  })
})

describe('the tail', () => {
  it('asks the database nothing while no stream is open, and once for all that are', async () => {
    const statements: string[] = []
    const { test, admin } = await started({ onStatement: (text) => void statements.push(text) })
    const reads = () => statements.filter((text) => text.includes('from audit_position p')).length
    await admin.client.cell_create({ data: {} })
    expect(reads()).toBe(0)
    const streams = await Promise.all(
      Array.from({ length: 5 }, () => openStream(test, { cookie: admin.cookie })),
    )
    const before = reads()
    await admin.client.cell_create({ data: {} })
    await Promise.all(streams.map((stream) => stream.take(1)))
    expect(reads() - before).toBeLessThan(5)
    for (const stream of streams) stream.leave()
  })
})
