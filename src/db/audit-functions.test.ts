import type pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FreshDatabase, migratedDatabase } from '../../test/fresh-database.ts'

let database: FreshDatabase
let client: pg.Client

beforeEach(async () => {
  database = await migratedDatabase()
  client = await database.open()
})
afterEach(() => database.drop())

const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
const row = (event_type: string | null, rest: object = {}) => ({ event_type, outcome: 'success', ...rest })

type Report = { lost?: number[]; cause?: string; mended?: number[] } | null

async function write(
  on: pg.Client,
  entries: object[],
  by: 'audit_write' | 'audit_write_paired' = 'audit_write',
): Promise<Report> {
  const { rows } = await on.query(`select ${by}($1)::json as report`, [JSON.stringify(entries)])
  return rows[0].report
}

async function number(on: pg.Client, most?: number): Promise<number> {
  const text = most === undefined ? 'select audit_number()' : `select audit_number(${most})`
  return (await on.query(text)).rows[0].audit_number
}

/** `seq:event_type` of the numbered rows, in order. */
async function listed(after = 0): Promise<string[]> {
  const { rows } = await client.query(
    `select seq || ':' || event_type as text from audit_entries() where seq > $1 order by seq`,
    [after],
  )
  return rows.map((entry) => entry.text)
}

async function timeline(cell: string): Promise<string[]> {
  const { rows } = await client.query(
    `select event_type from audit_cell join audit_log using (seq) where cell_id = $1 order by seq desc limit 50`,
    [cell],
  )
  return rows.map((entry) => entry.event_type)
}

describe('audit_write', () => {
  test('stores every key of a row, absent keys as null, and no number', async () => {
    const full = {
      event_type: 'cell_create',
      outcome: 'failure',
      actor_id: id(1),
      account_id: id(2),
      target_actor_id: id(3),
      target_account_id: id(4),
      ip: '::1',
      metadata: { cell_id: id(5), __proto_: { a: [1, 'é', null] } },
    }
    expect(await write(client, [full, row('bare'), row('null', { metadata: null, ip: null })])).toBeNull()
    const { rows } = await client.query(
      `select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata, seq,
              cell_ids, created_at between now() - interval '1 min' and clock_timestamp() as timed
         from audit_entries() order by written`,
    )
    const empty = Object.fromEntries(Object.keys(full).map((key) => [key, null]))
    const rest = { seq: null, cell_ids: null, timed: true }
    expect(rows).toEqual([
      { ...full, seq: null, cell_ids: [id(5)], timed: true },
      { ...empty, ...rest, event_type: 'bare', outcome: 'success' },
      { ...empty, ...rest, event_type: 'null', outcome: 'success' },
    ])
  })

  test('finds the cells under the six top-level keys and in the explicit list, each once', async () => {
    const six = { cell_id: id(1), source_id: id(2), parent_id: id(3), child_id: id(4), target_id: id(5) }
    await write(client, [
      row('six', { metadata: { ...six, new_id: id(6), grant_id: id(7), attempted_cell_id: id(8) } }),
      row('self', { metadata: { source_id: id(1), target_id: id(1).toUpperCase() } }),
      row('deep', { metadata: { source_id: id(1), new_id: id(9) }, cell_ids: [id(9), id(10), id(11)] }),
      row('other', {
        metadata: {
          cell_id: 'home',
          source_id: 7,
          parent_id: [id(1)],
          child_id: { cell_id: id(1) },
          new_id: null,
        },
      }),
      row('nested', { metadata: { x: { cell_id: id(1) } } }),
      row('spaced', { metadata: { cell_id: ` ${id(1)}`, source_id: `${id(1)}\n`, target_id: `{${id(1)}}` } }),
    ])
    await number(client)
    const all = await client.query(`select cell_id, array_agg(event_type order by seq) as events
      from audit_cell join audit_log using (seq) group by cell_id order by cell_id`)
    expect(all.rows).toEqual([
      { cell_id: id(1), events: ['six', 'self', 'deep'] },
      ...[2, 3, 4, 5, 6].map((n) => ({ cell_id: id(n), events: ['six'] })),
      ...[9, 10, 11].map((n) => ({ cell_id: id(n), events: ['deep'] })),
    ])
  })

  test('a row that cannot be stored is undone by itself and reported; its siblings and the caller go on', async () => {
    await client.query('begin')
    await client.query(`insert into account (username, password_hash) values ('written', 'x')`)
    const failure = await write(client, [
      row('first', { metadata: { cell_id: id(1) } }),
      row('nul', { metadata: { text: 'a\u0000b' } }),
      row(null),
      row('surrogate', { metadata: { text: '\ud800' } }),
      row('bad id', { actor_id: 'nobody' }),
      row('last'),
    ])
    await client.query('commit')
    expect(failure).toEqual({ lost: [1, 2, 3, 4], cause: '22P05' })
    await number(client)
    expect((await listed()).map((text) => text.split(':')[1])).toEqual(['first', 'last'])
    expect(await timeline(id(1))).toEqual(['first'])
    expect((await client.query('select username from account')).rows).toEqual([{ username: 'written' }])
  })

  test.each([
    ['renamed table', 'alter table audit_inbox rename to audit_inbox_away'],
    ['dropped column', 'alter table audit_inbox drop column metadata'],
    [
      'refusing trigger',
      `create function no() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
       create trigger no before insert on audit_inbox for each row execute function no()`,
    ],
    ['full identity', 'alter table audit_inbox alter column written set maxvalue 2 restart with 2'],
  ])('a %s fails no mutation, also where its plan was made before', async (_what, damage) => {
    await write(client, [row('before')])
    await client.query(damage)
    await client.query('begin')
    await client.query(`insert into account (username, password_hash) values ('written', 'x')`)
    const failure = await write(client, [row('a'), row('b')])
    expect((await client.query('commit')).command).toBe('COMMIT')
    expect(failure).toEqual({ lost: [0, 1], cause: expect.stringMatching(/^\w{5}( |$)/) })
    expect((await client.query('select username from account')).rows).toEqual([{ username: 'written' }])
  })

  describe('while another session has locked the table', () => {
    let other: pg.Client
    beforeEach(async () => {
      other = await database.open()
      await other.query('begin; lock table audit_inbox in access exclusive mode')
      await client.query('begin')
      await client.query(`insert into account (username, password_hash) values ('written', 'x')`)
    })
    afterEach(async () => {
      expect((await client.query('commit')).command).toBe('COMMIT')
      expect((await client.query('select username from account')).rows).toEqual([{ username: 'written' }])
      await other.query('rollback')
      expect((await client.query('select from audit_entries()')).rowCount).toBe(0)
    })

    test.each(['audit_write', 'audit_write_paired'] as const)(
      '%s waits once, loses its rows and says so; the caller keeps its own lock_timeout',
      async (by) => {
        const began = performance.now()
        const rows = Array.from({ length: 40 }, (_, nth) => row(`e${nth}`))
        const report = await write(client, rows, by)
        // Waiting for each row would take ten seconds.
        expect(performance.now() - began).toBeLessThan(5_000)
        expect(report).toEqual({ lost: [...rows.keys()], cause: expect.stringMatching(/^55P03 /) })
        expect((await client.query('show lock_timeout')).rows).toEqual([{ lock_timeout: '0' }])
      },
    )

    test('a cancel and a time limit during the wait lose the rows only', async () => {
      // Otherwise the function's own lock_timeout would end the wait first.
      await client.query(`alter function audit_write set lock_timeout = '1min'`)
      await client.query(`set local statement_timeout = '500ms'`)
      expect(await write(client, [row('a')])).toMatchObject({
        lost: [0],
        cause: expect.stringMatching(/^57014 /),
      })
      await client.query('set local statement_timeout = 0')
      const [{ pid }] = (await client.query('select pg_backend_pid() as pid')).rows
      const writing = write(client, [row('b'), row('c')])
      const admin = await database.open()
      const waits = `select from pg_stat_activity where pid = ${pid} and wait_event_type = 'Lock'`
      while ((await admin.query(waits)).rowCount === 0);
      await admin.query('select pg_cancel_backend($1)', [pid])
      expect(await writing).toMatchObject({ lost: [0, 1], cause: expect.stringMatching(/^57014 /) })
    })
  })

  test('audit_insert raises the failure, for callers that must not go on without their row', async () => {
    await expect(
      client.query('select audit_insert($1)', [JSON.stringify([row('ok'), row(null)])]),
    ).rejects.toMatchObject({ code: '23502' })
    expect((await client.query('select from audit_entries()')).rowCount).toBe(0)
  })
})

describe('audit_write_paired', () => {
  const stored = async (): Promise<unknown[]> =>
    (
      await client.query(
        'select event_type, actor_id, account_id, target_actor_id, target_account_id from audit_entries() order by written',
      )
    ).rows.map((entry) => Object.values(entry))
  const [ada, bob] = [id(1), id(2)]
  const [adas, bobs] = [id(11), id(12)]
  beforeEach(() =>
    client.query(`
      insert into account (id, username, password_hash) values ('${ada}', 'ada', 'x'), ('${bob}', 'bob', 'x');
      insert into actor (id, account_id, name, name_key)
        values ('${adas}', '${ada}', 'ada', 'ada'), ('${bobs}', '${bob}', 'bob', 'bob')`),
  )

  test('takes the account of a stored actor, completes half a pair silently, and reports what it mended', async () => {
    const report = await write(
      client,
      [
        row('right', { actor_id: adas, account_id: ada, target_actor_id: bobs, target_account_id: bob }),
        row('wrong', { actor_id: adas, account_id: bob, metadata: { n: 1.5 } }),
        row('wrong target', { target_actor_id: bobs, target_account_id: ada }),
        row('half', { actor_id: adas, target_actor_id: bobs }),
        row('account only', { account_id: bob, target_account_id: ada }),
        row('neither stored', { actor_id: id(99), account_id: bob }),
        row('capitals', { actor_id: adas, account_id: ada.toUpperCase() }),
      ],
      'audit_write_paired',
    )
    expect(report).toEqual({ mended: [1, 2] })
    expect(await stored()).toEqual([
      ['right', adas, ada, bobs, bob],
      ['wrong', adas, ada, null, null],
      ['wrong target', null, null, bobs, bob],
      ['half', adas, ada, bobs, bob],
      ['account only', null, bob, null, ada],
      ['neither stored', id(99), bob, null, null],
      ['capitals', adas, ada, null, null],
    ])
    expect(
      (await client.query('select metadata from audit_entries() where metadata is not null')).rows,
    ).toEqual([{ metadata: { n: 1.5 } }])
  })

  test('keeps the ids of an actor that the transaction removed, and finds one that it made', async () => {
    await client.query('begin')
    await client.query(`delete from actor where id = '${bobs}'`)
    await client.query(
      `insert into actor (id, account_id, name, name_key) values ('${id(13)}', '${ada}', 'new', 'new')`,
    )
    const rows = [
      row('gone', { actor_id: bobs, account_id: bob }),
      row('made', { actor_id: id(13), account_id: bob }),
    ]
    expect(await write(client, rows, 'audit_write_paired')).toEqual({ mended: [1] })
    await client.query('commit')
    expect(await stored()).toEqual([
      ['gone', bobs, bob, null, null],
      ['made', id(13), ada, null, null],
    ])
  })

  test('reports mended and lost rows together, and writes rows as they are if it cannot look up actors', async () => {
    const rows = [row('wrong', { actor_id: adas, account_id: bob }), row(null), row('bad id', { ip: 1 })]
    expect(await write(client, rows, 'audit_write_paired')).toEqual({
      mended: [0],
      lost: [1],
      cause: expect.stringMatching(/^23502 /),
    })
    await client.query('alter table actor rename to actor_away')
    expect(await write(client, rows.slice(0, 1), 'audit_write_paired')).toBeNull()
    expect((await stored()).at(-1)).toEqual(['wrong', adas, bob, null, null])
  })
})

describe('audit_number', () => {
  test('transactions that commit in reverse order of writing get rising numbers as they become visible', async () => {
    const [a, b] = [await database.open(), await database.open()]
    await a.query('begin')
    await write(a, [row('a1'), row('a2')])
    await b.query('begin')
    await write(b, [row('b1', { metadata: { cell_id: id(1) } })])
    expect(await number(client)).toBe(0)
    await b.query('commit')
    expect(await number(client)).toBe(1)
    expect(await listed()).toEqual(['1:b1'])
    await a.query('commit')
    expect(await number(client)).toBe(2)
    expect(await number(client)).toBe(0)
    expect(await listed()).toEqual(['1:b1', '2:a1', '3:a2'])
    expect(await timeline(id(1))).toEqual(['b1'])
  })

  test('a rolled-back transaction leaves nothing and costs no number', async () => {
    const other = await database.open()
    await other.query('begin')
    await write(other, [row('undone', { metadata: { cell_id: id(1) } })])
    await other.query('rollback')
    await write(client, [row('kept')])
    await number(client)
    expect(await listed()).toEqual(['1:kept'])
    expect(await timeline(id(1))).toEqual([])
  })

  test('rows of one transaction keep their order of writing, over calls, statements and batches', async () => {
    await client.query('begin')
    for (const from of [0, 40])
      await write(
        client,
        Array.from({ length: 40 }, (_, index) => row(`e${from + index}`)),
      )
    await client.query('commit')
    const counts = []
    do counts.push(await number(client, 30))
    while (counts.at(-1) === 30)
    expect(counts).toEqual([30, 30, 20])
    expect(await listed()).toEqual(Array.from({ length: 80 }, (_, index) => `${index + 1}:e${index}`))
  })

  test('a call that waited for another numbers what was committed meanwhile, and nothing twice', async () => {
    const [first, second] = [await database.open(), await database.open()]
    await write(client, [row('a')])
    await first.query('begin')
    expect(await number(first)).toBe(1)
    const waiting = number(second)
    const blocked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    while ((await client.query(blocked)).rowCount === 0);
    await write(client, [row('b')])
    await first.query('commit')
    expect(await waiting).toBe(1)
    expect(await listed()).toEqual(['1:a', '2:b'])
  })

  test('an open transaction without audit rows, even with an old snapshot, holds nothing up', async () => {
    const other = await database.open()
    await other.query('begin isolation level repeatable read')
    await other.query(`insert into account (username, password_hash) values ('slow', 'x')`)
    await write(client, [row('a')])
    expect(await number(client)).toBe(1)
    await other.query('commit')
  })

  test('numbers go on after the newest rows were removed', async () => {
    await write(client, [row('a'), row('b')])
    await number(client)
    await client.query('delete from audit_inbox; delete from audit_log')
    await write(client, [row('c')])
    await number(client)
    expect(await listed()).toEqual(['3:c'])
  })

  test('is refused under a snapshot that would not see the numbers of the call before it', async () => {
    for (const level of ['repeatable read', 'serializable']) {
      await client.query(`begin isolation level ${level}`)
      await expect(number(client)).rejects.toMatchObject({ code: '25000' })
      await client.query('rollback')
    }
  })

  test('with many concurrent writers and calls, followers see every committed row once, in rising order', async () => {
    const committed: string[] = []
    let writing = 8
    const writer = async (name: number) => {
      const on = await database.open()
      for (let turn = 0; turn < 25; turn++) {
        await on.query('begin')
        const events = Array.from({ length: 1 + ((name + turn) % 3) }, (_, nth) => `w${name}.${turn}.${nth}`)
        for (const event of events) {
          await write(on, [row(event)])
          await on.query('select pg_sleep(random() * 0.004)')
        }
        const undone = (name * 7 + turn) % 4 === 0
        await on.query(undone ? 'rollback' : 'commit')
        if (!undone) committed.push(...events)
      }
      writing--
    }
    const follower = async () => {
      const on = await database.open()
      const seen: string[] = []
      let last = 0
      for (;;) {
        const atEnd = writing === 0
        await number(on, 5)
        const { rows } = await on.query(
          'select seq::int, event_type from audit_entries() where seq > $1 order by seq limit 7',
          [last],
        )
        for (const entry of rows) {
          expect(entry.seq).toBeGreaterThan(last)
          last = entry.seq
          seen.push(entry.event_type)
        }
        if (atEnd && rows.length === 0) return seen
      }
    }
    const writers = Promise.all(Array.from({ length: 8 }, (_, name) => writer(name)))
    const followers = await Promise.all([follower(), follower(), follower()])
    await writers
    for (const seen of followers) expect([...seen].sort()).toEqual([...committed].sort())
    const order = await client.query(`
      select from audit_log a join audit_log b on a.seq < b.seq and a.written > b.written
       where split_part(a.event_type, '.', 1) = split_part(b.event_type, '.', 1)`)
    expect(order.rowCount).toBe(0)
    expect((await client.query('select seq::int from audit_position')).rows).toEqual([
      { seq: committed.length },
    ])
  })
})
