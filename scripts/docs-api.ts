import { actions } from '../src/actions.ts'
import { AuditEvent } from '../src/audit/entry.ts'
import { resolveOptions } from '../src/config/config.ts'
import type { AuthSpec, Method, WiredMethod } from '../src/core/method.ts'
import { type Route, rateLimitOf } from '../src/core/route.ts'
import { wireMethods } from '../src/core/wired-methods.ts'
import examples from '../src/discovery/examples.json' with { type: 'json' }
import { Schemas } from '../src/discovery/json-schema.ts'
import { codeStatus } from '../src/error-codes.ts'
import { notifications } from '../src/notifications.ts'
import { type BuiltinReason, catalogue, type Entry, type Reason } from '../src/reasons.ts'
import { createRegistry } from '../src/registry/registry.ts'
import { routeList } from '../src/routes.ts'
import { type JsonSchema, typeText } from '../src/wire/type-text.ts'
import { needsOf } from './docs-features.ts'

const { config } = resolveOptions({})

/** docs/api.md: every method and route, from its declaration. */
export function apiPage(): string {
  const schemas = new Schemas('draft-7')
  const methods = wired().map((action) => methodSection(action, schemas))
  const routes = routeList.map((route) => routeSection(route, schemas))
  const sent = Object.entries(notifications).map(
    ([name, params]) => `${name}  ${typeText(schemas.of(params, 'output'))}`,
  )
  schemas.of(AuditEvent, 'output')
  const shapes = Object.entries(schemas.shapes)
    .filter(([name]) => name !== 'Uuid')
    .sort()
    .map(([name, shape]) => `type ${name} = ${typeText(shape)}`)
  return [
    introduction,
    contents(),
    methodIntroduction,
    ...methods,
    accountIntroduction,
    ...routes,
    notificationIntroduction,
    code('ts', sent.join('\n')),
    '## Shapes\n',
    code('ts', shapes.join('\n\n')),
  ].join('\n')
}

/** Every method, whichever features are on. */
function wired(): WiredMethod[] {
  const table = Object.entries(actions as Record<string, Method>).map(
    ([name, { enabled: _, ...action }]) => [name, action] as const,
  )
  return [...wireMethods(Object.fromEntries(table), createRegistry({}), config, ['rpc.discover']).values()]
}

function contents(): string {
  const groups = Map.groupBy(Object.keys(actions), (name) =>
    name.replace(/^(role_grant|cell_\w+?|[a-z]+)[_.].*/, '$1'),
  )
  const link = (title: string): string =>
    `[${title}](#${title
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-')})`
  return [
    '## Contents\n',
    ...[...groups.values()].map((names) => `- ${names.map(link).join(' · ')}`),
    `- ${routeList.map(({ method, path }) => link(`${method} /api/account${path}`)).join(' · ')}`,
    '- [Notifications](#notifications) · [Shapes](#shapes)\n',
  ].join('\n')
}

function methodSection(action: WiredMethod, schemas: Schemas): string {
  const { method, description, auth, side_effects, error_reasons } = action
  const input = schemas.of(action.params, 'input')
  const example = (examples.methods as Record<string, { params: object; result: unknown }>)[method]
  return [
    `### \`${method}\``,
    '',
    description,
    '',
    `${access(auth)} ${side_effects ? 'POST.' : 'POST or GET.'}${limited(action)}${needsOf(method)}`,
    ...shapesOf(input, schemas.of(action.output, 'output')),
    ...rules(input),
    ...reasons(error_reasons),
    ...(example ? [exampleOf('params', example.params, example.result)] : []),
  ].join('\n')
}

function routeSection(route: Route, schemas: Schemas): string {
  const { method, path, doc, auth, errors } = route
  const input = route.input && schemas.of(route.input, 'input')
  const example = (examples.routes as Record<string, { body?: object; result?: object }>)[`${method} ${path}`]
  return [
    `### ${method} \`/api/account${path}\``,
    '',
    doc,
    '',
    `${access(auth)}${routeLimited(route)}${needsOf(path)}`,
    ...shapesOf(input, route.output && schemas.of(route.output, 'output')),
    ...(input ? rules(input) : []),
    ...reasons(errors?.filter((reason) => reason !== 'rate_limited')),
    ...(example?.result ? [exampleOf('body', example.body, example.result)] : []),
  ].join('\n')
}

function access({ account, actor, roles, credential_types, fresh }: AuthSpec): string {
  const who =
    account === 'none'
      ? 'Anyone.'
      : account === 'optional'
        ? 'Anyone; a credential widens what is seen.'
        : 'Needs a credential.'
  const parts = [
    who,
    actor === 'required' && 'Acts as an actor.',
    roles && `Role: ${roles.map(asked).join(' or ')}.`,
    credential_types && `By ${credential_types.join(' or ')} only.`,
    fresh && 'A session has to be [fresh](sign-in.md#fresh-sessions).',
  ]
  return parts.filter(Boolean).join(' ')
}

/** A role, and where it must be held if not everywhere. */
const asked = (role: NonNullable<AuthSpec['roles']>[number]): string =>
  typeof role === 'string'
    ? role
    : `${role.role} (global, or in the ${role.scope_kind ?? 'scope'} that the input names)`

function limited({ method, rate_limit, rate_limit_group = method, budget, auth }: WiredMethod): string {
  if (!rate_limit) return ''
  const who =
    rate_limit === 'ip' ? `IP${auth.account === 'optional' ? ' without a credential' : ''}` : 'account'
  const work = budget ? ` The work is limited by ${limitText(budget)}.` : ''
  return ` Limit per ${who}: ${limitText(rate_limit_group)}.${work}`
}

/** The default of a limiter, and the setting that changes it. */
function limitText(limiter: string): string {
  const { max, seconds } = (config as Record<string, unknown>)[`limit_${limiter}`] as Record<string, number>
  return `${max} in ${seconds} s (\`CELLKEEP_LIMIT_${limiter.toUpperCase()}\`)`
}

function routeLimited(route: Route): string {
  const axis = rateLimitOf(route, config)
  if (axis === undefined) return ''
  const limiters = Object.values(route.rate_limit ?? {}).map(limitText)
  const other = axis === 'both' ? ' If one of them is off, the other still counts.' : ''
  return ` Rate limit \`${axis}\`: ${limiters.join(' and ')}.${other}`
}

function shapesOf(input: JsonSchema | undefined, output: JsonSchema | undefined): string[] {
  const lines = [input && `input  ${typeText(input)}`, `output ${output ? typeText(output) : '(empty body)'}`]
  return ['', code('ts', lines.filter(Boolean).join('\n'))]
}

/** What the types cannot say: the rules of strings and of free-form data. */
function rules({ properties = {} }: JsonSchema): string[] {
  const told = Object.entries(properties).flatMap(([name, { description, anyOf = [] }]) => {
    const rule = description ?? anyOf.find((option) => option.description)?.description
    return rule ? [`- \`${name}\`: ${rule}`] : []
  })
  return told.length === 0 ? [] : [...told, '']
}

function reasons(listed: readonly Reason[] = []): string[] {
  const all = listed.map((reason) => {
    const { code: number, status = codeStatus(number) }: Entry = catalogue[reason as BuiltinReason]
    return `\`${reason}\` (${status})`
  })
  return all.length === 0 ? [] : [`Reasons: ${all.join(', ')}.\n`]
}

const exampleOf = (what: string, sent: object | undefined, result: unknown): string =>
  code('jsonc', `${sent ? `// ${what}\n${jsonText(sent)}\n` : ''}// result\n${jsonText(result)}`)

const lineMax = 100

/** JSON with as few lines as fit. */
function jsonText(value: unknown, indent = ''): string {
  const line = JSON.stringify(value, null, 1).replace(/\s*\n\s*/g, ' ')
  if (typeof value !== 'object' || value === null || indent.length + line.length <= lineMax) return line
  const inner = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((one) => jsonText(one, inner))
    : Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${jsonText(one, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${parts.map((part) => inner + part).join(',\n')}\n${indent}${close}`
}

const code = (language: string, text: string): string => `\`\`\`${language}\n${text}\n\`\`\`\n`

const introduction = `<!-- Generated from src/actions.ts and src/routes.ts by scripts/docs.ts; edit the declarations, not this page. -->
# API

The service has JSON-RPC 2.0 methods at \`/api/rpc\`, and REST routes at \`/api/account\` for signing in and the session
cookie. Every refusal has a \`reason\` to switch on: [errors.md](errors.md) lists all of them. Unknown keys of an input are
refused; ignore unknown keys of an output. The same descriptions are machine-readable at \`/api/openrpc.json\` (also by
\`rpc.discover\`) and \`/api/openapi.json\`.

Notation of types:

| Type | Meaning |
|---|---|
| \`Uuid\` | a UUID; upper case is accepted, and returned in lower case |
| \`Time\` | in input: RFC 3339 with \`Z\` or an offset, \`2026-01-02T04:04:05+01:00\`; in output: UTC with milliseconds, \`2026-01-02T03:04:05.678Z\` |
| \`string(3..39)\` | a string of 3 to 39 characters; no string holds U+0000 |
| \`integer(1..200)\` | a whole number from 1 to 200 |
| \`object\` | a JSON object; its numbers are doubles, so send whole numbers beyond ±(2^53 − 1) as strings: they are rounded otherwise |
| \`Uuid[]\`, then \`(1..50)\` | a list, of 1 to 50 entries |
| \`key?\`, \`= x\` | may be left out; its default |
| \`A \\| B\` | either |
`

const methodIntroduction = `## Methods

\`\`\`sh
curl http://127.0.0.1:4040/api/rpc -b cookies.txt -H 'Content-Type: application/json' \\
  -d '{"jsonrpc": "2.0", "id": 1, "method": "cell_list", "params": {"limit": 10}}'
\`\`\`

\`id\` is a string or a number and is returned with the answer; a call without one is refused. \`params\` is an object, or is
left out. \`acting\` names the actor that acts; it may be left out if the account has only one actor. A body is
\`application/json\` in UTF-8, without \`Content-Encoding\`, at most 1 MiB long (\`CELLKEEP_BODY_LIMIT\`), and nested at most
100 levels deep.

A method without side effects can also be called by GET: \`/api/rpc?method=cell_list&id=1&params={"limit":10}\`, URL-encoded.
Answers have \`Cache-Control: no-store\`, because they depend on the caller. To cache public content, put a server of your own
in front of this one.

An array of 1 to 50 calls is a batch. Its calls are carried out one after the other, each in a transaction of its own. The
answer has status 200 and is an array in the same order. After 16 MiB of answers, the remaining calls are refused with
\`batch_answer_too_large\`.

The first line below a method says who may call it, and its limits by default. *Needs a credential* means the session cookie,
an API token in \`Authorization: Bearer …\`, or the daemon token in \`X-Daemon-Token\`. A token with the scope \`read_only\` may
call the methods that GET reaches; one with the scope \`methods\` those that it names. *Only with* and *not with* say when
the service has the method; otherwise it answers \`method_not_found\`, or 404 \`not_found\` for a route.

An answer is \`{"jsonrpc": "2.0", "id": 1, "result": …}\` or \`{…, "error": {"code", "message", "data": {"reason", …}}}\`.
A refused input has the reason \`invalid_params\` and \`issues\`: up to 20 of \`{path, code, message}\`, where the code is
\`invalid_type\` (also for a missing key), \`too_small\`, \`too_big\`, \`invalid_format\`, \`invalid_value\`,
\`unrecognized_keys\`, \`invalid_union\`, \`invalid_cursor\`, \`password_common\`, \`unknown_scope_kind\`,
\`invite_identifier_required\` or \`custom\`, and the message states the rule.

To repeat a call safely, send it with an idempotency key: a header \`Idempotency-Key\` (over a WebSocket, a member
\`idempotency_key\` beside \`id\`) of 16 to 64 letters, digits, \`-\` and \`_\` that no other call has, such as a UUID. Methods
that take only POST and need a credential accept a key, but not in a batch. For 24 hours a repetition of the call by the same
account gets the first answer, marked with the header \`Idempotency-Replayed: true\` (over a WebSocket, a member
\`replayed\`), and nothing else happens. If the first call is still running, the repetition waits for it; if the first call was
undone, the repetition is carried out. With another method, actor or input, the key is refused with
\`idempotency_key_reused\`. Answers that hold a secret or are larger than 64 KiB are not stored; a repetition is then refused
with \`idempotency_replayed\`. An account may have 10,000 keys at a time.

Besides the reasons listed with it, a method may be refused with \`invalid_params\`, \`rate_limited\`,
\`service_unavailable\`, \`busy\`, \`storage_full\`, \`timeout\` and \`internal_error\`; if it takes a credential, also with
\`authentication_required\`, \`account_vanished\`, \`credential_type_required\`, \`token_scope_required\`,
\`second_factor_enrolment_required\`, \`fresh_authentication_required\`, \`insufficient_permissions\`, \`actor_required\`,
\`actor_not_on_account\` and \`no_actors_on_account\`; with a key, also with \`idempotency_key_reused\` and
\`idempotency_replayed\`.
`

const accountIntroduction = `## Account routes

Bodies are JSON objects. A refusal is \`{"error": "<reason>", …}\` with the HTTP status of the reason. The session is in the
cookie \`svc_session\` (HttpOnly, SameSite=Strict, Secure). A route that answers without a body has no example.
`

const notificationIntroduction = `## Notifications

The WebSocket sends these to every socket of the account concerned, as \`{"jsonrpc": "2.0", "method": …, "params": …}\`
without an \`id\`; see [live.md](live.md).
`
