import { execFile } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import pg from 'pg'
import { createService } from '../src/create-service.ts'
import type { Connection } from '../src/db/servers/connection.ts'
import { connectionTo } from '../src/embedded/postgres-process.ts'
import { silentLog } from '../src/log/log.ts'
import { toUrl } from '../src/testing/cluster.ts'
import { machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import { product, Started, temporary } from './processes.ts'

/**
 * `npm run bench:import`: imports users by the command, beside a running server and with fsync, and then loads the
 * same rows by COPY into the same tables of another schema, in one transaction. Exits 1 over the bar.
 */
const { values: flags } = parseArgs({
  options: {
    users: { type: 'string', default: '100000' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
  },
})
const users = Number(flags.users)
const bar = 3
const bin = fileURLToPath(new URL('../bin/cellkeep.js', import.meta.url))
const tables = ['account', 'actor', 'account_import', 'audit_inbox']

const started = new Started()
try {
  const directory = await temporary(started)
  const dataDir = join(directory, 'data')
  await product(started, dataDir, {})
  const connection = connectionTo(join(dataDir, 'socket'), 'cellkeep')
  const client = new pg.Client(connection)
  await client.connect()
  started.add(() => client.end())

  const file = join(directory, 'users.jsonl')
  await writeFile(file, Array.from({ length: users }, (_, number) => line(number)).join('\n'))
  const imported = await timed(() =>
    promisify(execFile)(process.execPath, [bin, 'account', 'import', file, '--json'], {
      cwd: directory,
      env: { PATH: process.env.PATH, CELLKEEP_DATA_DIR: dataDir },
    }),
  )
  const copied = await copyAgain(client, connection, directory)
  const ratio = imported / copied
  const text = [
    `# Import of ${users} users\n`,
    machineLine(await machine(client)),
    '',
    table(
      ['What', 'Seconds', 'Rows of accounts per second'],
      [
        [
          '`cellkeep account import`, its start included',
          short(imported / 1000),
          short((users / imported) * 1000),
        ],
        ['COPY of the same rows', short(copied / 1000), short((users / copied) * 1000)],
        [`ratio (bar: ${bar})`, short(ratio), ''],
      ],
    ),
  ].join('\n')
  console.log(text)
  if (flags.out) {
    await mkdir(flags.out, { recursive: true })
    await writeFile(join(flags.out, 'import.md'), `${text}\n`)
  }
  process.exitCode = ratio <= bar ? 0 : 1
} finally {
  await started.close()
}

function line(number: number): string {
  const username = `user-${number}`
  return JSON.stringify({
    ...{ username, external_id: `id-${number}`, created_at: '2020-01-02T03:04:05Z' },
    ...{ email: `${username}@example.org`, email_verified: true, actor_name: `User ${number}` },
    password: `$2b$12$${String(number).padStart(21, 'a')}O${'a'.repeat(31)}`,
  })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}

/** Into the tables of another schema, with their indexes and references. */
async function copyAgain(client: pg.Client, connection: Connection, directory: string): Promise<number> {
  const database_url = toUrl({ ...connection, schema: 'copied' })
  const target = { database_url, database_schema: 'copied', cookie_keys: ['k'.repeat(32)] }
  await (await createService({ ...target, log: silentLog })).close()
  const files = join(directory, 'copy')
  await mkdir(files)
  await chmod(files, 0o777)
  for (const name of tables) await client.query(`copy cellkeep.${name} to '${join(files, name)}'`)
  return await timed(async () => {
    await client.query('begin')
    for (const name of tables) await client.query(`copy copied.${name} from '${join(files, name)}'`)
    await client.query('commit')
  })
}
