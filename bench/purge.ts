import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { keptKeys } from '../src/auth/kept-keys.ts'
import { createService } from '../src/create-service.ts'
import { connectionTo } from '../src/embedded/postgres-process.ts'
import { silentLog } from '../src/log/log.ts'
import { toUrl } from '../src/testing/cluster.ts'
import { machine, machineLine } from './machine.ts'
import { median, short, table } from './numbers.ts'
import { loader, product, Started, temporary } from './processes.ts'
import { rpc, type Workload } from './workloads.ts'
import { generateWorld, openSessions } from './world.ts'

/**
 * `npm run bench:purge`: purges an account with much of everything, on the product as users start it, with fsync.
 * Meanwhile clients read cells, including those that lose their owner. It uses the operator's purge, which runs the
 * same code as the method. Exits 1 over a bar.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** The account has this many cells and audit rows, and a tenth as many grants of each kind. */
    size: { type: 'string', default: '10000' },
    /** Cells of all other accounts. */
    cells: { type: 'string', default: '100000' },
    connections: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '1' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const [rounds, size, seconds] = [Number(flags.rounds), Number(flags.size), Number(flags.seconds)]
const limitMs = 2_000
const sessions = 100

type Round = { purge: number; quiet: number; during: number; longest: number }

const started = new Started()
try {
  const { port, client, service, cookies } = await setUp()
  const load = loader(started)
  const taken: Round[] = []
  for (let round = 0; round < rounds; round++) {
    const account_id = await makeVictim(client, round)
    const readers = await reading(client, cookies, account_id)
    const job = { port, seconds, requests: readers.requests, connections: readers.connections }
    const quiet = await load(job)
    const purge = async (): Promise<number> => {
      const begun = performance.now()
      await service.operations.purgeAccount({ account_id, confirm: true }, { via: 'bench' })
      return performance.now() - begun
    }
    const [during, took] = await Promise.all([load(job), purge()])
    taken.push({ purge: took, quiet: quiet.p99, during: during.p99, longest: during.max })
  }
  const text = report(taken, machineLine(await machine(client)))
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'purge.md'), text)
  }
  process.exitCode = taken.every(isGood) ? 0 : 1
} finally {
  await started.close()
}

/** No reader waits for the purge: the longest read is shorter than it. */
function isGood({ purge, longest }: Round): boolean {
  return purge <= limitMs && longest < Math.max(purge, 100)
}

/** Creates an account whose two actors own the cells and hold the grants; resolves to its id. */
async function makeVictim(client: pg.Client, round: number): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    `with made as (
       insert into account (username, password_hash) values ($1, '-') returning id
     ), actors as (
       insert into actor (account_id, name, name_key)
       select id, n, n from made, unnest(array['first', 'second']) n returning account_id
     )
     select distinct account_id as id from actors`,
    [`victim${round}`],
  )
  const { id } = rows[0] as { id: string }
  const actor = `(array(select id from actor where account_id = '${id}'))[1 + i % 2]`
  const few = Math.ceil(size / 10)
  await client.query(`
    insert into cell (visibility, data, data_bytes, created_by, updated_by, updated_at, version)
    select 'public', '{"label": "owned"}', 18, ${actor}, ${actor}, now(), 2 from generate_series(1, ${size}) i`)
  await client.query(`
    insert into cell_grant (cell_id, level, actor_id, cell_created_at)
    select id, 'viewer', ${actor}, created_at
    from (select row_number() over () as i, id, created_at from cell
      where created_by is distinct from ${actor.replace('1 + i % 2', '1')} limit ${few}) c
    on conflict do nothing`)
  await client.query(`
    insert into role_grant (actor_id, role, scope_kind, scope_id)
    select ${actor}, 'team', 'scope', gen_random_uuid() from generate_series(1, ${few}) i`)
  await client.query(`
    insert into auth_session (id, account_id, expires_at)
    select encode(sha256(gen_random_uuid()::text::bytea), 'hex'), '${id}', now() + interval '1 day'
    from generate_series(1, 20)`)
  await client.query(`
    select audit_insert(json_agg(json_build_object('event_type', 'cell_create', 'outcome', 'success',
      'account_id', '${id}', 'actor_id', ${actor}, 'metadata', json_build_object('n', i))))
    from generate_series(1, ${size}) i`)
  await client.query('analyze')
  return id
}

/** Reads of public cells; every second cell belongs to the purged account. */
async function reading(
  client: pg.Client,
  cookies: readonly string[],
  account_id: string,
): Promise<Pick<Workload, 'requests' | 'connections'>> {
  const some = async (which: string) =>
    (
      await client.query<{ id: string }>(
        `select id from cell where visibility = 'public' and deleted_at is null and ${which}
         order by id limit 1000`,
        [account_id],
      )
    ).rows
  const own = await some('created_by in (select id from actor where account_id = $1)')
  const others = await some('created_by not in (select id from actor where account_id = $1)')
  const ids = own.flatMap((cell, at) => [cell.id, others[at % others.length]?.id ?? cell.id])
  return {
    requests: ids.map((id, at) => rpc('cell_get', cookies[at % cookies.length] as string, { id })),
    connections: Number(flags.connections),
  }
}

async function setUp() {
  const dataDir = join(await temporary(started), 'data')
  const { port } = await product(started, dataDir, {})
  const connection = connectionTo(join(dataDir, 'socket'), 'cellkeep')
  const client = new pg.Client(connection)
  await client.connect()
  started.add(() => client.end())
  await generateWorld(client, { cells: Number(flags.cells) })
  const keys = await keptKeys(dataDir, 'cookie_keys')
  const indexes = Array.from({ length: sessions }, (_, index) => index)
  const cookies = await openSessions(client, indexes, keys)
  const database_url = toUrl(connection)
  const service = await createService({ database_url, cookie_keys: [...keys], log: silentLog })
  started.add(() => service.close())
  return { port, client, service, cookies }
}

function report(taken: readonly Round[], facts: string): string {
  const rows = taken.map((one, at) => [
    String(at + 1),
    short(one.purge),
    ...[one.quiet, one.during, one.during / one.quiet, one.longest].map(short),
    isGood(one) ? 'yes' : 'NO',
  ])
  return `${[
    '# The purge of a large account',
    `Written by \`npm run bench:purge\`: an account with ${size} cells, ${Math.ceil(size / 10)} role grants, as many cell grants and
${size} audit rows, among ${flags.cells} cells. Meanwhile ${flags.connections} connections read cells without a pause. Bars: ${limitMs} ms for
the purge, and no read waits for it.`,
    table(
      ['Round', 'purge ms', 'cell_get p99 quiet, ms', 'during, ms', 'ratio', 'longest read, ms', 'good'],
      rows,
    ),
    `Median of the purges: ${short(median(taken.map(({ purge }) => purge)))} ms.`,
    facts,
  ].join('\n\n')}\n`
}
