import { z } from 'zod'
import type { Operation } from '../src/core/operation.ts'
import { events } from '../src/events.ts'
import { logEvents } from '../src/log/events.ts'
import { operations } from '../src/operations.ts'
import { type JsonSchema, typeText } from '../src/wire/type-text.ts'

const text = (schema: z.ZodType): string =>
  typeText(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema)

const block = (lines: string[]): string => ['```text', ...lines, '```', ''].join('\n')

/** docs/audit-events.md: every event type with its metadata. */
export function auditEventsPage(): string {
  const sections = Object.entries<{ success: z.ZodType; failure?: z.ZodType }>(events).map(
    ([type, { success, failure }]) =>
      [
        `## \`${type}\`\n`,
        block([`success  ${text(success)}`, ...(failure ? [`failure  ${text(failure)}`] : [])]),
      ].join('\n'),
  )
  return [auditIntroduction, ...sections].join('\n')
}

/** docs/operator-calls.md: every operation with its input. */
export function operatorCallsPage(): string {
  const sections = Object.entries(operations as unknown as Record<string, Operation>).map(([name, call]) =>
    [
      `## \`${name}\`\n`,
      `${call.doc}${call.command ? ` Command: \`cellkeep ${call.command.name}\`.` : ''}`,
      '',
      block([`input  ${text(call.input)}`]),
      ...(call.errors.length > 0
        ? [`Refuses with ${call.errors.map((reason) => `\`${reason}\``).join(', ')}.\n`]
        : []),
    ].join('\n'),
  )
  return [operatorIntroduction, ...sections].join('\n')
}

/** docs/log-events.md: the words of warnings and errors in the log. */
export function logEventsPage(): string {
  const rows = Object.entries(logEvents).map(([event, remedy]) => `| \`${event}\` | ${remedy} |`)
  return [logIntroduction, '| `event` | What it means, what to do |', '|---|---|', ...rows, ''].join('\n')
}

const logIntroduction = `<!-- Generated from src/log/events.ts by scripts/docs.ts; edit the table, not this page. -->
# Events in the log

Every line of level \`warn\` or \`error\` has a key \`event\`, whose value stays the same between versions: match on it, not on
the text. The first line of a cause is written at once; repetitions become one line per 10 s, with their count in
\`repeated\`.
`

const auditIntroduction = `<!-- Generated from src/events.ts by scripts/docs.ts; edit the schemas, not this page. -->
# Audit events

Every type of row in the audit log, with its \`metadata\`. The other columns of a row are \`AuditEvent\` in
[api.md](api.md#shapes): \`seq\`, \`event_type\`, \`outcome\`, who acted, on whom, from which address, and when.

- **Reading.** \`audit_log_list\` returns pages, the [stream](client.md#the-audit-log) follows the log live,
  \`cellkeep audit export\` writes a file, and \`cellkeep tail\` prints to a terminal. They need an admin; the export, like
  every operator command, needs access to the data directory or the database instead.
- **What is not in it.** Metadata holds ids and structural values, never what people typed. The one exception is
  \`account_purge\`, after which nothing else says whose ids these were.
- **\`failure\`** is the metadata of a refused attempt. Most refusals leave no row. A type without \`failure\` has rows with
  \`outcome: "failure"\` only for writes that were undone, with the metadata of success, or null, or
  \`{ reason: "rolled_back" }\`.
- **\`via\`** is in rows without a request: \`cli\` for a command, or the \`via\` of the library call.
- **Your own events** are declared in [\`audit_events\`](declarations.md#audit-events).
`

const operatorIntroduction = `<!-- Generated from src/operations.ts by scripts/docs.ts; edit the declarations, not this page. -->
# Operator calls

\`service.operations\` has the operator commands as functions for your own code. They need no credential and know no caller:
your code decides who may call them. Rules that protect the installation still apply, such as that of the last admin.

<!-- setup
import { createService } from 'cellkeep'
const service = await createService({
  database_url: process.env.DATABASE_URL,
  cookie_keys: [process.env.COOKIE_KEY ?? ''],
  allowed_origins: ['https://wiki.example'],
  roles: [{ name: 'writer', grant_paths: ['admin'] }],
})
-->
\`\`\`ts
const by = { via: 'people_import' }
const { account, actor } = await service.operations.createAccount({ username: 'grace', password: 'correct horse battery' }, by)
await service.operations.grantRole({ actor_id: actor.id, role: 'writer', path: 'admin' }, by)
console.log(await service.operations.findAccount({ ref: account.id }))
await service.close()
\`\`\`

- **Arguments.** An operation that changes something takes the input, and an object that says who acts (\`via\` and the other
  keys below). An operation that only reads takes the input alone.
- **\`via\`**, 1 to 32 characters of a-z and \`_\`, is the word by which the audit row names your code. \`actor_id\`, \`account_id\`
  and \`ip\`, one IP address, beside it say for whom it acts.
- **\`within\`** joins an open transaction: pass the second argument of a \`mutation()\` handler, or the \`work\` of
  \`service.transaction\`. Without it each call is a transaction of its own, and a call that changes something inside an open
  transaction is refused. [embedding.md](embedding.md#operations-in-a-handler) has an example.
- **Results** are typed: \`createAccount\` resolves to \`{ account, actor }\`, \`createInvite\` to the invite with its \`link\`,
  \`listAccounts\` to \`{ accounts, next_cursor }\`, and \`exportAudit\` to an async iterable,
  \`for await (const row of await service.operations.exportAudit({}))\`.
- **In a script** next to a running server, call \`createService\` with the \`database_url\` of the server, your declarations
  and \`heartbeat: false\`. Only one process can use a data directory: stop the server first, or use the commands, which work
  while it runs.
- **Refusals** reject with \`ServiceError\`, whose \`reason\` is one of those listed, or \`invalid_params\` with \`issues\`.
- **No limiter** is charged.
`
