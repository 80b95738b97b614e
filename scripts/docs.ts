import { readFileSync, writeFileSync } from 'node:fs'
import { written } from '../src/config/kinds.ts'
import { envName } from '../src/config/reading.ts'
import type { AnySetting } from '../src/config/setting.ts'
import { groups } from '../src/config/table.ts'
import { apiPage } from './docs-api.ts'
import { errorsPage } from './docs-errors.ts'
import { auditEventsPage, logEventsPage, operatorCallsPage } from './docs-lists.ts'

/**
 * Writes the generated pages of docs/; `--check` writes nothing and fails if one is stale.
 * To add a page, add an entry here.
 */
export const pages: Readonly<Record<string, () => string>> = {
  'docs/api.md': apiPage,
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorsPage,
  'docs/audit-events.md': auditEventsPage,
  'docs/operator-calls.md': operatorCallsPage,
  'docs/log-events.md': logEventsPage,
}

/** The pages that differ from what the code generates. */
export function stalePages(): string[] {
  return Object.keys(pages).filter((name) => readPage(name) !== pages[name]?.())
}

function configurationPage(): string {
  const sections = groups.map(({ title, settings }) => {
    const rows = Object.entries<AnySetting>(settings).map(([key, setting]) => {
      const doc = setting.secret ? `${setting.doc} **Secret.**` : setting.doc
      return `| \`${envName(key)}\` | ${usual(setting)} | ${cell(setting.kind.rule)} | ${cell(doc)} |`
    })
    return [
      `## ${title}`,
      '',
      '| Variable | Default | Values | Meaning |',
      '|---|---|---|---|',
      ...rows,
      '',
    ].join('\n')
  })
  return `${introduction}\n${sections.join('\n')}`
}

function usual(setting: AnySetting): string {
  const own = setting.shown ?? `\`${written(setting.kind, setting.default)}\``
  return cell(
    setting.library === undefined ? own : `${own} (library: \`${written(setting.kind, setting.library)}\`)`,
  )
}

const cell = (text: string): string => text.replaceAll('|', '\\|')

const fileOf = (name: string): URL => new URL(`../${name}`, import.meta.url)

function readPage(name: string): string | undefined {
  try {
    return readFileSync(fileOf(name), 'utf8')
  } catch {
    return undefined
  }
}

const introduction = `<!-- Generated from src/config/table.ts by scripts/docs.ts; edit the table, not this page. -->
# Configuration

You need not set anything: \`cellkeep start\` serves \`http://127.0.0.1:4040\` on an embedded PostgreSQL. A setting is
taken from the environment, else from the config file, else from the defaults below. \`cellkeep config\` prints all
settings in force and where each comes from. If settings are wrong, all problems are listed at once, and the process ends
with exit code 78.

- An empty variable counts as unset. Variables without the prefix (\`DATABASE_URL\`, \`PORT\`) are not read. But what the database
  URL leaves out, PostgreSQL's driver takes from its own: \`PGHOST\`, \`PGPORT\`, \`PGUSER\`, \`PGPASSWORD\`, \`PGPASSFILE\`,
  \`PGDATABASE\` and \`PGSSLMODE\`.
- A secret may come from a file instead: \`CELLKEEP_COOKIE_KEYS_FILE=/run/secrets/keys\`.
- An unknown variable with the prefix is a warning; an unknown key in the config file is an error.
- Relative paths start at the working directory.
- A config file in TypeScript or with \`import\` needs \`"type": "module"\` in the \`package.json\` beside it: \`npm pkg set type=module\`.

The **config file** is \`CELLKEEP_CONFIG\`, else \`cellkeep.config.{ts,mjs,js,json}\` in the working directory. It
exports an object with the same settings, their names in lower case and without the prefix; lists may be arrays:

\`\`\`ts
import { defineConfig } from 'cellkeep'

export default defineConfig({ port: 8080, allowed_origins: ['https://app.example'], limit_login_ip: '5/900' })
\`\`\`

It also takes what environment variables cannot hold: \`roles\`, \`scope_kinds\`, \`grant_paths\`, \`credential_types\`,
\`audit_events\`, \`hooks\`, \`actions\`, \`authorize_offer\`, \`self_service_roles\`, \`reasons\`, \`notifications\` (see
[declarations.md](declarations.md)), \`deliver\` ([messages](sign-in.md#messages)), and \`oidc\`, the
[providers](sign-in.md#sign-in-with-a-provider) to sign in with. \`createService\` takes the same object as its options and
reads no environment variables.
`

if (import.meta.main) {
  const stale = stalePages()
  if (process.argv.includes('--check')) {
    for (const name of stale) console.error(`${name} is stale: run \`node scripts/docs.ts\` and commit it.`)
    process.exitCode = stale.length > 0 ? 1 : 0
  } else {
    for (const name of stale) writeFileSync(fileOf(name), pages[name]?.() ?? '')
  }
}
