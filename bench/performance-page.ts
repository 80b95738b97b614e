import { type Bar, barChart } from './chart.ts'
import { type Machine, machineLine } from './machine.ts'
import { short, table } from './numbers.ts'
import { type Profile, profiledParts } from './profile.ts'
import type { Figures } from './report.ts'
import type { Sizes, Yardstick } from './yardsticks.ts'

type Turn = Figures & { system: string; work: string }

/** One run of `npm run performance`. */
export type Performance = {
  facts: Machine
  version: string
  commit: string
  settings: { rounds: number; seconds: number; cells: number; connections: number }
  turns: Turn[]
  memoryAfterLists: number
  /** The part of it that is pages of files. */
  memoryOfFiles: number
  profiles: Profile[]
  /** Verifications per second of the bare hash. */
  argon: number
  statements: Yardstick[]
  sizes: Sizes
}

/** What is kept of a version: the processor time per request of server and database, by workload. */
export type Release = { version: string; at: string; took: Record<string, [number, number]> }

export const release = ({ version, facts, turns }: Performance): Release => ({
  version,
  at: facts.at.slice(0, 10),
  took: Object.fromEntries(
    turns
      .filter(({ system }) => system === 'Cellkeep')
      .map(({ name, cpu, databaseCpu }) => [name, [Math.round(cpu), Math.round(databaseCpu)]]),
  ),
})

/** What each of the compared tasks takes in all systems, and what it does in each. */
const differences = `What the figures compare, and what they do not:

| | Cellkeep | better-auth | Parse Server |
|---|---|---|---|
| A session is read | from the database for each request | from the database for each request | from a cache for 5 s |
| Passwords | Argon2id, in threads | scrypt | bcrypt |
| Reads and lists are filtered by | owner, grants, roles and scopes, in the statement | – | an access list in each row |
| A write leaves an audit row | yes, in its transaction | – | no |
| A write counts against a quota | yes | – | no |
| Content | – | none: sessions and sign-in alone are compared | schema made on first use, one column per key |`

/** Counted by hand: not every machine has the tools for it. */
const ofDatabase = `Of the database: shares of the instructions of one backend, counted with callgrind on 2026-11-25. A page of 50 own cells
spends 0.10 on starting its statement, 0.15 on reading 51 rows, 0.11 on turning \`data\` into text and 0.45 on the rest of the
answer's text. A single cell spends 0.62 on starting a statement whose parts for edges seldom run; under load, reads of the
same moment share one. An insert of a cell spends 0.10 to 0.14 on the check constraints of its table, which PostgreSQL parses for
each statement.`

/** Kept so that nobody has to try it again. */
const left = `Prototypes that gained too little to be kept. Ratios of the processor time of the database, measured in turn, PostgreSQL 18, 2 cores, 400000
cells with 274 bytes of data on average, 2026-11-26; today's version is 1.

- **The JSON of each cell in a column, all but its data.** A page of 50 own cells takes 0.79, one of visible cells 0.81; a text
  that cost nothing to read would take 0.79 too. An insert takes 1.08 to 1.11, an update 1.03 to 1.13, the log (WAL) of each
  is 20 % longer, and a cell takes 278 bytes more: 2.8 GB for ten million, a quarter of all that they take.
- **The same with its data.** Pages take 0.90 and 0.75, an insert 1.06 to 1.13, WAL is 34 % longer, and a cell takes
  498 bytes more.
- **Other ways to put the text together.** None of its columns takes more than 3 %. \`concat\` takes 1.03 to 1.11, \`format\` 0.98,
  \`||\` as a balanced tree 0.98 to 1.00, \`row_to_json\` 0.94 without the names of the keys, and a plan that is never made
  anew 1.01.
- **In the server, for a page of 50 own cells.** Of its own processor time, which differs by 0.05 from run to run: text that is
  ASCII sent as \`latin1\` takes 1.02, statements made flat before they wait 0.95 to 0.99, and the cursor's MAC by two plain hashes
  no less than by an HMAC. \`--max-semi-space-size=16\` takes 0.9, but 45 MB more than 8.
- **A page as bytes that are never decoded.** A bare server that copies 25 kB and sends them takes 0.9 to 1.1 of one that makes a
  text of them and sends that.
- **\`data\` as \`json\`, which is stored as it is sent.** Pages of 50 own and 50 visible cells take 0.89 and 0.90 of the database's
  instructions (callgrind). Another type rewrites the table and its indexes under an exclusive lock, and nodes of the version
  before could not write beside.
- **Reading a cell without its edges until it has some.** Alone it takes 0.68 of the instructions, most of which start the parts of
  the statement that read edges; under load reads share a statement, and its start with it.
- **Pages of several callers in one statement**, as single cells are read. Eight pages take 0.92 of eight statements, four 1.1:
  what is saved at the start of each is spent again in starting the inner plan anew for each caller.
- **Less garbage in \`cell_create\`**, 2026-11-29. A call makes 66 kB, so 64 at once fill half of a young generation of 8 MB,
  and each collection copies what waits for the database. What lived needlessly long is gone: log lines as trees of
  their parts, and the classes that V8 makes of each object with a getter. Without these \`cell_create\` and \`cell_update\`
  take 0.8 of the server's time, \`GET /verify\` 0.9. The rest comes from a hundred places, none above 4 %.
- **Arrays written by a function of our own**, since the driver's makes 8 % of that garbage: it takes 1.2 times as long.
  Three nested \`AsyncLocalStorage.run\`, \`Promise.race\` and two timers per transaction take less than 1 µs each, putting
  together the statement of a page 3 to 5 µs.
- **\`wal_sync_method=open_datasync\`**: a commit takes 1.1. A durable commit of its own takes 130 to 170 µs of the database, so
  three of them are a tenth of an offer with its acceptance and revocation; \`cell_create\` shares one among up to 16.
- **Hidden classes, inline caches and deoptimisations**, by V8's logs of fourteen workloads, 2026-11-29, on a loaded machine.
  Once warm, no request makes a class, one in five at most misses a cache, and no function is deoptimised again and
  again. Only pooled connections had become dictionaries; without that a statement takes 0.89 of the driver's time,
  \`cell_field_set\` 0.97 of the server's. A promise fewer in three places takes 0.97 to 1.01, a bound statement as one
  buffer instead of two 0.95 to 1.04. Rows as arrays would save 3 µs of 51 rows, but a page of cells is one row.`

/** The page and the files that it shows. */
export function page(
  run: Performance,
  releases: readonly Release[],
): { text: string; files: Record<string, string> } {
  const { facts, settings, turns, statements, argon, memoryAfterLists, profiles } = run
  const compared = turns.filter(({ work }) => work !== '' && work !== 'floor')
  const floor = turns.find(({ work }) => work === 'floor') as Turn
  const bars = compared.map(
    (one): Bar => ({ group: one.work, label: one.system, parts: [one.cpu, one.databaseCpu] }),
  )
  const figures = (one: Turn) => [one.cpu, one.databaseCpu, one.rate, one.p50, one.p99].map(short)
  const columns = ['server µs', 'database µs', 'requests/s', 'p50 ms', 'p99 ms']
  const own = turns.filter(({ system, work }) => system === 'Cellkeep' && work === '')
  const of = (name: string) => turns.find((one) => one.name === name && one.system === 'Cellkeep')
  const parts = [
    '# Performance',
    `All figures on this page, except those of callgrind and under “Tried and dropped”, are from one run of \`npm run performance\`, which wrote it. ${machineLine(facts)}
Version ${run.version}, commit ${run.commit}, ${settings.cells} cells of ${Math.max(1000, settings.cells / 100)} owners, with fsync.
Everything ran in turn, in slices of ${settings.seconds} s, clients on the same machine; each figure is the median of
${settings.rounds}. **Processor time per request**, of the server and of its database, holds on a busy machine too; requests per
second and latencies are those of this machine, which runs the clients as well. Comparisons hold, absolute figures do not.`,
    '## Beside others',
    `[better-auth](https://www.better-auth.com) and [Parse Server](https://parseplatform.org), from npm, set up as their
documentation says (\`bench/peers\`), with databases on the same PostgreSQL, ${settings.connections} connections (4 for sign-in).`,
    '![Processor time per request, of server and database, for each work and system](performance.svg)',
    table(
      ['Work', 'System', ...columns],
      compared.map((one) => [one.work, one.system, ...figures(one)]),
    ),
    differences,
    '## Every workload',
    `\`÷ floor\` compares the rate with a bare \`node:http\` server that parses and sends JSON: ${short(floor.rate)} requests/s at
${short(floor.cpu)} µs. Rows named “per cell” and “per row” count those; a batch counts as one request; an offer with
its acceptance and revocation is three calls, which take 34 statements and three commits. The calls of a batch over HTTP run one
after the other, so that a statement reads the cells of as many batches as run at once, here 8; those of a socket run together,
and a statement reads 16. Before the audit log is read, its new rows are numbered, which belongs to the writes.`,
    table(
      ['Workload', ...columns, '÷ floor', 'memory MB'],
      [...own, ...compared.filter(({ system }) => system === 'Cellkeep')].map((one) => [
        one.name,
        ...figures(one),
        short(one.rate / floor.rate),
        short(one.memory),
      ]),
    ),
    `In the last 10 of 20 s of lists the server takes ${short(memoryAfterLists)} MB, the median of ten moments. ${short(run.memoryOfFiles)} MB of
that are pages of Node’s program, which all its processes share.`,
    '## Where the time goes',
    `Of the server: percent of the processor time of its main thread, by a sampled profile of a node of its own. “Guards,
method” is what Cellkeep itself adds between the edge and its statements.`,
    table(
      ['Part', ...profiles.map(({ name }) => name)],
      profiledParts.map((part) => [
        part,
        ...profiles.map(({ shares }) => String(Math.round(100 * shares[part]))),
      ]),
    ),
    ofDatabase,
    '## Yardsticks',
    `What the parts can do by themselves. A bare Argon2id verifies ${short(argon)} passwords per second here; sign-in does
${short(of('login')?.rate ?? Number.NaN)}. A bare \`ws\` answers ${short(turns.find(({ system }) => system === 'bare ws')?.rate ?? Number.NaN)} messages per second; ours, with the
session read for each, ${short(of('WebSocket round trip')?.rate ?? Number.NaN)}.`,
    statements.length > 0
      ? table(
          ['`pgbench -M prepared`, 8 clients', 'per second', 'database µs'],
          statements.map(({ name, rate, databaseCpu }) => [name, short(rate), short(databaseCpu)]),
        )
      : '`pgbench` was not installed.',
    '## Tried and dropped',
    left,
    '## By release',
    'Server + database, µs per request; of different machines, if their runs were on different ones.',
    table(
      ['Workload', ...releases.map(({ version, at }) => `${version}, ${at}`)],
      Object.keys(releases.at(-1)?.took ?? {}).map((name) => [
        name,
        ...releases.map(({ took }) => took[name]?.join(' + ') ?? '–'),
      ]),
    ),
    'What hardware a load needs is in [operations](operations.md#sizing).',
  ]
  const svg = barChart(
    'Processor time per request, µs (logarithmic; less is better)',
    ['server', 'database'],
    bars,
  )
  return { text: `${parts.join('\n\n')}\n`, files: { 'performance.svg': svg } }
}

/** The table of sizes in docs/operations.md, between its marks. */
export function sizing({ turns, sizes, memoryAfterLists, facts }: Performance): string {
  const perCore = (name: string): string => {
    const one = turns.find((turn) => turn.name === name && turn.system === 'Cellkeep') as Turn
    return short(Number((1e6 / (one.cpu + one.databaseCpu)).toPrecision(2)))
  }
  const loads = [
    ['session and token checks', 'account_verify'],
    ['sign-ins', 'login'],
    ['reads of one cell', 'cell_get'],
    ['lists of 50', 'cell_list'],
    ['new cells', 'cell_create'],
    ['changes of a cell', 'cell_update'],
  ] as const
  return `<!-- sizing -->
Measured by \`npm run performance\` on a core of ${facts.cpu}; plan with half of it.

${table(
  ['A core, server and database together, does', 'per second'],
  loads.map(([what, name]) => [what, perCore(name)]),
)}

| What | Takes |
|---|---:|
| the server under lists | ${short(memoryAfterLists)} MB of memory |
| an idle HTTP connection | ${short(sizes.connection / 1024)} kB of memory |
| a cell of 250 bytes, with its indexes | ${short(sizes.cell / 1024)} kB on disk |
| an audit row, with its indexes | ${sizes.auditRow} bytes on disk |
| a session | ${sizes.session} bytes on disk |
<!-- /sizing -->`
}
