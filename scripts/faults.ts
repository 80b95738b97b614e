/**
 * `npm run faults [name …] [-- --write]`: makes each fault for real, to a server on its embedded PostgreSQL under reads
 * and writes, and reports what callers see and for how long; fails if an acknowledged write is lost. `--write` puts the
 * figures of the run into docs/reliability.md.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { workspace } from '../test/helpers/server-process.ts'
import { clock } from './faults/clock.ts'
import { connections } from './faults/connections.ts'
import { descriptors } from './faults/descriptors.ts'
import { diskFull } from './faults/disk-full.ts'
import { killPostgres } from './faults/kill-postgres.ts'
import { killServer } from './faults/kill-server.ts'
import { logReader } from './faults/log-reader.ts'
import { stoppedPostgres } from './faults/stopped-postgres.ts'
import { NotRun } from './packaging/check.ts'

const faults = {
  killServer,
  killPostgres,
  stoppedPostgres,
  connections,
  diskFull,
  clock,
  descriptors,
  logReader,
}
const page = fileURLToPath(new URL('../docs/reliability.md', import.meta.url))
const { values, positionals } = parseArgs({ options: { write: { type: 'boolean' } }, allowPositionals: true })

const unknown = positionals.filter((name) => !Object.hasOwn(faults, name))
if (unknown.length > 0)
  throw new Error(`There is no fault ${unknown}; there are ${Object.keys(faults).join(', ')}.`)
const chosen = Object.entries(faults).filter(
  ([name]) => positionals.length === 0 || positionals.includes(name),
)

const space = await workspace(tmpdir())
const rows: string[] = []
let [passed, skipped] = [0, 0]
try {
  for (const [name, fault] of chosen) {
    const row = (...cells: string[]) => rows.push(`| ${fault.name}: ${fault.how} | ${cells.join(' | ')} |`)
    try {
      const { seen, howLong, acknowledged } = await fault.run(await space.make(name))
      console.log(
        `${name}: ${seen}; without success for: ${howLong}; ${acknowledged} acknowledged, none lost`.replaceAll(
          '<br>',
          '; ',
        ),
      )
      row(seen, howLong, `none of ${acknowledged}`)
      passed += 1
    } catch (error) {
      if (!(error instanceof NotRun)) throw error
      console.log(`${name}: not run, as ${error.message}`)
      row(`not run, as ${error.message}`, '', '')
      skipped += 1
    }
  }
} finally {
  await space.remove()
}
if (values.write) await writePage()
console.log(`${passed} passed, ${skipped} not run, 0 failed`)

async function writePage(): Promise<void> {
  const text = await readFile(page, 'utf8')
  const [begin, end] = ['<!-- npm run faults -->\n', '<!-- end -->']
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from || chosen.length < Object.keys(faults).length)
    throw new Error('The page needs its two marks, and a run of every fault.')
  const head = `| Fault | What callers see | Longest time without success | Acknowledged writes lost |\n|---|---|---|---|\n`
  const where = `\nOne run on ${cpus().length} cores, Node ${process.versions.node}: 4 callers that write and 2 that read, without a pause.\n`
  const notes = chosen.flatMap(([, { name, note }]) => (note ? [`- ${name}: ${note}`] : [])).join('\n')
  await writeFile(
    page,
    `${text.slice(0, from + begin.length)}\n${head}${rows.join('\n')}\n${where}\n${notes}\n\n${text.slice(to)}`,
  )
}
