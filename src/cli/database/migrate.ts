import { setTimeout as delay } from 'node:timers/promises'
import { migrate as runMigrations, withClient } from '../../db/migration/migrate.ts'
import { blockerText } from '../../db/migration/patience.ts'
import { type PlannedStep, planned } from '../../db/migration/plan.ts'
import { compare, readRecords } from '../../db/migration/records.ts'
import type { Around } from '../../db/migration/runner.ts'
import {
  type MigrationStatus,
  type RunnerStatus,
  type StepStatus,
  statusOf,
} from '../../db/migration/status.ts'
import { migrationNames, readSteps } from '../../db/migration/steps.ts'
import type { Connection } from '../../db/servers/connection.ts'
import { version } from '../../wire/version.ts'
import { subcommand, WrongUsage } from '../shell/command.ts'
import { group } from '../shell/command-group.ts'
import { confirmed } from '../shell/confirm.ts'
import { aligned, type CommandIo } from '../shell/output.ts'
import { withProgress } from '../shell/progress.ts'
import { type Opened, withDatabase } from '../with-service.ts'

const run = subcommand('migrate', {
  name: 'run',
  usage: '[--to STEP] [--yes] [--check]',
  summary:
    'Migrate the database to the schema of this version. --check changes nothing, and exits with 3 if a migration is needed.',
  options: { to: { type: 'string' }, yes: { type: 'boolean' }, check: { type: 'boolean' } },
  run: async ({ options: { to, yes = false, check = false }, out, io }) => {
    const only = to === undefined ? undefined : upTo(to)
    const work = async ({ connection, log }: Opened): Promise<string[]> => {
      if (check) return (await runMigrations(connection, { mode: 'check' })).applied
      if (!yes) await confirmContracts(connection, io, only)
      return (await runMigrations(connection, { mode: 'run', only, log, around: shown(io) })).applied
    }
    await withDatabase(
      io,
      async (opened) => {
        const applied = await work(opened)
        const text = applied.map((name) => `applied ${name}`).join('\n')
        const nothing = only
          ? `${only.at(-1)} and all steps before it are already done.`
          : 'The schema is current.'
        out.result({ applied }, text || nothing)
      },
      { makes: !check },
    )
  },
})

function upTo(step: string): string[] {
  const names = migrationNames()
  const at = names.findIndex((name) => name === step || name.startsWith(`${step}_`))
  if (at < 0)
    throw new WrongUsage(
      `There is no step ${step}; \`cellkeep migrate plan\` lists those that are pending, and the last step is ${names.at(-1)}.`,
    )
  return names.slice(0, at + 1)
}

const pendingOf = async (connection: Connection) =>
  await withClient(connection, async (client) => {
    const records = await readRecords(client)
    const { pending } = compare(readSteps(), records, version)
    return { pending, isFresh: records.length === 0, plans: await planned(client, pending) }
  })

async function confirmContracts(connection: Connection, io: CommandIo, only?: string[]): Promise<void> {
  const { pending, isFresh } = await pendingOf(connection)
  const names = pending
    .filter(({ kind, name }) => kind === 'contract' && (only?.includes(name) ?? true))
    .map(({ name }) => name)
  if (isFresh || names.length === 0) return
  await confirmed(io, `${names.join(', ')} cannot be undone, and older versions stop working after it.`)
}

const shown =
  (io: CommandIo): Around =>
  ({ name, kind }, work) =>
    withProgress(io, `${kind === 'index' ? 'blocks' : 'rows'} of ${name}`, work, {
      everySeconds: 1,
      fields: { step: name, kind },
    })

const plan = subcommand('migrate', {
  name: 'plan',
  summary: 'Show what the pending steps will lock, scan and change. Changes and locks nothing itself.',
  run: ({ out, io }) =>
    withDatabase(io, async ({ connection }) => {
      const { plans } = await pendingOf(connection)
      const rows = plans.map(({ step, kind, lock, cost, rows, ...plan }) => [
        ...[step, kind, tablesOf(plan), lock, cost, rows === null ? '-' : `${rows}`, nodesOf(plan)],
      ])
      out.result(
        { steps: plans },
        rows.length > 0 ? aligned([planTitles, ...rows]).trimEnd() : 'The schema is current.',
      )
    }),
})

const planTitles = ['STEP', 'KIND', 'TABLES', 'LOCK', 'COST', 'ROWS', 'NODES']

const tablesOf = ({ tables }: Pick<PlannedStep, 'tables'>): string =>
  [...new Set(tables.map(({ table }) => table))].join(' ') || '-'

function nodesOf({
  nodes_go_on,
  nodes_below,
  needs,
}: Pick<PlannedStep, 'nodes_go_on' | 'nodes_below' | 'needs'>): string {
  if (nodes_below.length > 0) return `${nodes_below.join(', ')} must be ${needs}`
  return nodes_go_on ? 'go on' : 'wait'
}

const status = subcommand('migrate', {
  name: 'status',
  usage: '[--watch]',
  summary:
    'Show the steps, their progress, who runs one and what it waits for. --watch repeats this until nothing runs.',
  options: { watch: { type: 'boolean' } },
  run: ({ options: { watch = false }, out, io }) =>
    withDatabase(io, ({ connection }) =>
      withClient(connection, async (client) => {
        for (;;) {
          const now = await statusOf(client, readSteps())
          out.result(now, phrase(now))
          if (!watch || now.runners.length === 0) return
          await delay(watchEveryMs)
        }
      }),
    ),
})

const watchEveryMs = 2000

function phrase({ steps, runners }: MigrationStatus): string {
  const open = steps.filter(({ state }) => state !== 'done')
  const rows = open.map((one) => [one.step, one.kind, one.state, shareOf(one)])
  const head = `${steps.length - open.length} of ${steps.length} steps are done.`
  return [head, aligned(rows).trimEnd(), ...runners.map(runnerText)].filter(Boolean).join('\n')
}

/** A table that was never analyzed has no estimate. */
const shareOf = ({ done_rows, total_rows }: StepStatus): string =>
  done_rows === null ? '' : `${done_rows}${total_rows ? ` of about ${total_rows}` : ''} rows`

function runnerText({ pid, address, seconds, index, waits_for }: RunnerStatus): string {
  const built = index ? `, ${index.phase} (${index.done} of ${index.of} blocks)` : ''
  const blocked = waits_for.map((one) => `\n  waits for ${blockerText(one)}`)
  return `Run by server process ${pid}${address ? ` from ${address}` : ''}, for ${Math.round(seconds)} s${built}${blocked.join('')}`
}

export const migrate = group({
  name: 'migrate',
  defaultWord: 'run',
  summary: 'Migrate the database to the schema of this version, while nodes keep running.',
  details:
    'A step of kind `contract` is refused while a live node needs what the step removes. To continue an interrupted run,\nrun it again.\n\nExamples:\n  cellkeep migrate plan\n  cellkeep migrate\n  cellkeep migrate status --watch',
  commands: [run, plan, status],
})
