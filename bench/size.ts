import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { WebSocket } from 'ws'
import { backedUpTables } from '../src/backup/format.ts'
import { defaultHashing } from './hashing.ts'
import { type Machine, machineLine } from './machine.ts'
import { memoryOf, type Prepared, prepare, slicer } from './measure.ts'
import { short, table } from './numbers.ts'
import { Started } from './processes.ts'
import { type Workload, workloads } from './workloads.ts'

/**
 * `npm run bench:size`: fills every table with realistic rows in the product as users start it, measures what they
 * take, and writes docs/sizing.md.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '5' },
    sockets: { type: 'string', default: '1000' },
    out: { type: 'string', default: join(import.meta.dirname, '../docs/sizing.md') },
  },
})
const [rows, seconds, sockets] = [Number(flags.rows), Number(flags.seconds), Number(flags.sockets)]

/** Sockets of one session. */
const each = 4

type TableSize = { name: string; rows: number; table: number; indexes: number }
type Rate = { name: string; perCore: number; wal: number | null }
type Sizing = { facts: Machine; data: number; tables: TableSize[]; rates: Rate[]; socket: number }

const measured = new Set(['account_verify', 'cell_get', 'cell_list', 'cell_create', 'cell_update'])

const isWrite = /create|update/

const started = new Started()
try {
  const prepared = await prepare(started, { cells: rows, sessions: 500, hashing: defaultHashing() })
  await fill(prepared.client)
  const tables = await sizesOf(prepared.client)
  // Before the calls below, which leave a heap with room for all sockets.
  const socket = await socketBytes(prepared)
  const { rows: mean } = await prepared.client.query('select avg(data_bytes)::float8 as data from cell')
  // Otherwise the first change of a page after a checkpoint writes the whole page, and a short run writes hardly
  // anything else.
  await prepared.client.query('alter system set full_page_writes = off')
  await prepared.client.query('select pg_reload_conf()')
  const rates: Rate[] = []
  for (const workload of workloads(prepared.world, '').filter(({ name }) => measured.has(name)))
    rates.push(await rateOf(prepared, workload))
  const sizing: Sizing = {
    facts: prepared.facts,
    data: mean[0].data,
    tables,
    rates,
    socket,
  }
  await writeFile(flags.out, page(sizing))
  console.log(page(sizing))
} finally {
  await started.close()
}

/** Rows of what the generated world does not have. */
async function fill(client: pg.Client): Promise<void> {
  const someone = `md5('account:' || i % ${Math.max(1000, rows / 100)})::uuid`
  const hash = `encode(sha256(i::text::bytea), 'hex')`
  const each = `from generate_series(1, ${rows}) i`
  for (const statement of [
    `insert into auth_session (id, account_id, expires_at, methods)
      select ${hash}, ${someone}, now() + interval '30 days', '{pwd}' ${each}`,
    `insert into api_token (id, account_id, name, token_hash, scope)
      select 'tok_' || i, ${someone}, 'Token ' || i, ${hash}, '{}' ${each}`,
    `insert into idempotency_key (account_id, key_hash, request_hash, reply)
      select ${someone}, sha256(i::text::bytea), sha256(i::text::bytea), jsonb_build_object('cell', data)
      ${each} join cell on id = md5('cell:' || i - 1)::uuid`,
    `insert into limiter_charge (limiter, key, at, expires_at)
      select 'cell_read', ${someone}, now(), now() + interval '1 minute' ${each}`,
    `insert into cell_usage (account_id, shard, cells, bytes)
      select id, shard, 10, 10000 from account, generate_series(0, 15) shard on conflict do nothing`,
    `insert into audit_cell (cell_id, seq) select md5('cell:' || i - 1)::uuid, i ${each}`,
    `insert into audit_log (seq, event_type, outcome, metadata, cell_ids, actor_id, account_id)
      select i, 'cell_create', 'success', jsonb_build_object('cell_id', md5('cell:' || i - 1)::uuid),
        array[md5('cell:' || i - 1)::uuid], md5('actor:' || i % 1000)::uuid, ${someone} ${each}`,
    `update audit_position set seq = ${rows}`,
    `insert into cell_field (source_id, name, target_id)
      select md5('cell:' || i - 1)::uuid, 'field', md5('cell:' || (i * 7) % ${rows})::uuid ${each}`,
    `insert into cell_item (parent_id, position, child_id)
      select md5('cell:' || i - 1)::uuid, 'a0', md5('cell:' || (i * 7) % ${rows})::uuid ${each}`,
  ])
    await client.query(statement)
  await client.query('vacuum (analyze)')
}

async function sizesOf(client: pg.Client): Promise<TableSize[]> {
  const sizes: TableSize[] = []
  for (const name of [...backedUpTables(), 'limiter_charge'].sort()) {
    const { rows: found } = await client.query(
      `select (select count(*) from ${pg.escapeIdentifier(name)})::float8 as rows,
        sum(pg_table_size(relid))::float8 as "table", sum(pg_indexes_size(relid))::float8 as indexes
       from (select $1::regclass as relid union select relid from pg_partition_tree($1::regclass)) part`,
      [pg.escapeIdentifier(name)],
    )
    sizes.push({ name, ...found[0] })
  }
  return sizes
}

/** Calls per second of one core, for server and database together, and the WAL that each writes. */
async function rateOf({ server, client }: Prepared, workload: Workload): Promise<Rate> {
  const lsn = async (): Promise<number> =>
    (await client.query(`select pg_current_wal_insert_lsn() - '0/0' as at`)).rows[0].at
  const slice = slicer(started, seconds)
  await slice(workload, server, 1)
  const before = await lsn()
  const { count, cpu, databaseCpu } = await slice(workload, server)
  const wal = ((await lsn()) - before) / count
  return {
    name: workload.name,
    perCore: 1e6 / (cpu + databaseCpu),
    wal: isWrite.test(workload.name) ? wal : null,
  }
}

/** Bytes of the server for each of many open WebSockets. */
async function socketBytes({ server, world }: Prepared): Promise<number> {
  const before = memoryOf(server.pid)
  const open: WebSocket[] = []
  // An account may have so many at most, and each has sessions.
  for (const cookie of world.cookies.slice(world.cookies.length - sockets / each))
    for (let n = 0; n < each; n++) {
      const headers = { cookie }
      const one = new WebSocket(`ws://127.0.0.1:${server.port}/api/ws`, { headers, perMessageDeflate: false })
      await once(one, 'open')
      open.push(one)
    }
  const bytes = ((memoryOf(server.pid) - before) * 1_048_576) / open.length
  for (const one of open) one.terminate()
  return bytes
}

function page({ facts, data, tables, rates, socket }: Sizing): string {
  const full = tables.filter((one) => one.rows >= Math.min(rows, 100_000) / 2)
  const kept = tables.filter((one) => one.rows > 0 && !full.includes(one)).map(({ name }) => `\`${name}\``)
  const bytes = (one: TableSize, part: number): string => String(Math.round(part / one.rows))
  return `<!-- Written by \`npm run bench:size\`; run that, and do not edit this page. -->
# Sizing

The disk space of rows, the WAL that calls write, and the calls that a core handles, from one run of
\`npm run bench:size -- --rows ${rows}\`.
${machineLine(facts)} Everything ran on one machine, clients included. What is not listed was not measured.

## Rows

Bytes on disk per row, after \`vacuum\`. Plan a fifth more, because an update leaves the old version until the next vacuum. The
${(tables.find(({ name }) => name === 'cell') as TableSize).rows} cells have ${Math.round(data)} bytes of \`data\` on average.

${table(
  ['Table', 'rows measured', 'table', 'indexes', 'together'],
  full.map((one) => [
    `\`${one.name}\``,
    String(one.rows),
    bytes(one, one.table),
    bytes(one, one.indexes),
    bytes(one, one.table + one.indexes),
  ]),
)}

Not measured, because they had too few rows: ${kept.join(', ')}.

## Calls

Calls per second of one core that server and database share; plan with half of it. The write-ahead log (WAL) is what standbys
receive and archives keep. Not included are the whole pages that it also holds for the first change of each page after a
checkpoint.

${table(
  ['Call', 'per second and core', 'bytes of WAL each'],
  rates.map(({ name, perCore, wal }) => [`\`${name}\``, short(perCore), wal === null ? '' : short(wal)]),
)}

## Memory and connections

| What | Takes |
|---|---:|
| 1000 open WebSockets | ${short((socket * 1000) / 1_048_576)} MB of the server’s memory |
| each node | up to \`CELLKEEP_DATABASE_POOL_MAX\` + 4 connections to the database |
| the indexes of ${rows} cells, which should fit into the memory of the database server | ${short((tables.find(({ name }) => name === 'cell') as TableSize).indexes / 1_048_576)} MB |
`
}
