import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type pg from 'pg'
import { cpuOf } from './cpu.ts'
import { memoryOf, type Target } from './measure.ts'
import { type Started, temporary } from './processes.ts'

/** What the parts below the service can do on their own, and the figures for the size of a deployment. */

export type Yardstick = { name: string; rate: number; databaseCpu: number }

const cellId = `md5('cell:' || cast(:i as int))::uuid`
const actorId = `md5('actor:' || cast(:a as int))::uuid`
const accountId = `md5('account:' || cast(:a as int))::uuid`

/** Bare statements on the tables of the product, prepared, without the access rule. */
const scripts = (cells: number): Record<string, string> => ({
  'one cell by its id': `\\set i random(0, ${cells - 1})
select * from cell where id = ${cellId};`,
  'the newest 50 public cells': `select * from cell where visibility = 'public' and deleted_at is null
order by created_at desc, id desc limit 50;`.replaceAll('\n', ' '),
  'an insert of a cell, its usage and its audit row': `\\set a random(0, 499)
with written as (insert into cell (kind, data, data_bytes, created_by) values ('note', '{"label": "A note", "text": "${'Some words that a person might keep. '.repeat(8)}"}', 330, ${actorId}) returning *), counted as (insert into cell_usage (account_id, shard, cells, bytes) values (${accountId}, 65, 1, 330) on conflict (account_id, shard) do update set cells = cell_usage.cells + excluded.cells, bytes = cell_usage.bytes + excluded.bytes), logged as (insert into audit_inbox (event_type, outcome, actor_id, account_id, metadata) values ('cell_create', 'success', ${actorId}, ${accountId}, '{}')) select * from written;`,
})

/** `pgbench -M prepared`; empty if it is not installed. */
export async function pgbench(
  started: Started,
  { socket, server, cells, seconds }: { socket: string; server: Target; cells: number; seconds: number },
): Promise<Yardstick[]> {
  const dir = await temporary(started)
  const found: Yardstick[] = []
  for (const [name, script] of Object.entries(scripts(cells))) {
    const file = join(dir, 'script.sql')
    await writeFile(file, `${script}\n`)
    const before = cpuOf(server.pid).below
    const args = ['-n', '-M', 'prepared', '-c', '8', '-T', String(seconds), '-f', file]
    const place = ['-h', socket, '-p', '5432', '-U', 'cellkeep', 'cellkeep']
    const env = { ...process.env, PGOPTIONS: '-c search_path=cellkeep,public -c jit=off' }
    const done = await promisify(execFile)('pgbench', [...args, ...place], { env }).catch((error) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    if (!done) return []
    // Until the sessions of pgbench have ended.
    await delay(300)
    const [, count] = /actually processed: (\d+)/.exec(done.stdout) ?? []
    const rate = Number(/^tps = ([\d.]+)/m.exec(done.stdout)?.[1])
    found.push({ name, rate, databaseCpu: ((cpuOf(server.pid).below - before) / Number(count)) * 1e6 })
  }
  return found
}

export type Sizes = { connection: number; cell: number; auditRow: number; session: number }

/** Bytes of rows with their indexes. */
export async function sizes(client: pg.Client): Promise<Omit<Sizes, 'connection'>> {
  const bytes = async (table: string): Promise<number> => {
    const { rows } = await client.query(
      `select (select sum(pg_total_relation_size(relid)) from (
           select 'cellkeep.${table}'::regclass as relid union select relid from pg_partition_tree('cellkeep.${table}')) part
         )::float8 / greatest(count(*), 1) as each from cellkeep.${table}`,
    )
    return Math.round(rows[0].each)
  }
  return {
    cell: await bytes('cell'),
    auditRow: await bytes('audit_log'),
    session: await bytes('auth_session'),
  }
}

const idle = 1000

/** Bytes of an idle connection in the server. */
export async function idleConnection({ port, pid }: Target): Promise<number> {
  const before = memoryOf(pid)
  const sockets = await Promise.all(
    Array.from({ length: idle }, async () => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.on('error', () => {})
      socket.write('GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n')
      await new Promise((resolve) => socket.once('data', resolve))
      return socket
    }),
  )
  const each = ((memoryOf(pid) - before) * 1_048_576) / idle
  for (const socket of sockets) socket.destroy()
  return Math.max(0, Math.round(each))
}
