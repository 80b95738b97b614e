import { z } from 'zod'
import { actions } from '../src/actions.ts'
import { Cell } from '../src/cells/cells.ts'
import { CellGrant } from '../src/cells/grants/grants.ts'
import { resolveOptions } from '../src/config/config.ts'
import type { Action, AuthSpec } from '../src/core/method.ts'
import { type Route, rateLimitOf } from '../src/core/route.ts'
import { routeList } from '../src/routes.ts'
import { Uuid } from '../src/wire/types.ts'

/** docs/api.md: every method and route, from its declaration. */
export function apiPage(): string {
  // The global registry is shared by the whole process, so the names are registered only for this page.
  for (const [id, schema] of [...named, ['Uuid', Uuid] as const]) z.globalRegistry.add(schema, { id })
  try {
    return page()
  } finally {
    for (const schema of [...named.values(), Uuid]) z.globalRegistry.remove(schema)
  }
}

function page(): string {
  const methods = Object.entries(actions as unknown as Record<string, Action>)
  return [
    introduction,
    ...methods.map(([name, action]) => methodSection(name, action)),
    accountIntroduction,
    ...routeList.map((route) =>
      [
        `### ${route.method} \`/api/account${route.path}\``,
        '',
        route.doc,
        '',
        `${access(route.auth)}${routeLimited(route)}`,
        ...shapes(route.input, route.output),
        ...reasons(route.errors),
      ].join('\n'),
    ),
    '## Shapes\n',
    ...[...named].map(([name, schema]) => shape(name, schema)),
  ].join('\n')
}

/** Shapes that are written out once and referred to by name. */
const named = new Map<string, z.ZodType>(Object.entries({ Cell, CellGrant }))

function methodSection(name: string, action: Action): string {
  const input =
    action.auth.actor === 'none'
      ? action.input
      : (action.input as z.ZodObject).extend({ acting: Uuid.optional() })
  return [
    `### \`${name}\``,
    '',
    action.description,
    '',
    `${access(action.auth)} ${action.side_effects ? 'POST.' : 'POST or GET.'}${limited(name, action)}`,
    ...shapes(input, action.output),
    ...reasons(action.error_reasons),
  ].join('\n')
}

function access({ account, actor, roles, credential_types }: AuthSpec): string {
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
  ]
  return parts.filter(Boolean).join(' ')
}

/** A role, and where it must be held if not everywhere. */
const asked = (role: NonNullable<AuthSpec['roles']>[number]): string =>
  typeof role === 'string'
    ? role
    : `${role.role} (global, or in the ${role.scope_kind ?? 'scope'} that the input names)`

function limited(name: string, { rate_limit, rate_limit_group = name, budget }: Action): string {
  const groups = [...(rate_limit ? [rate_limit_group] : []), ...(budget ? [budget] : [])]
  const settings = groups.map((group) => `\`CELLKEEP_LIMIT_${group.toUpperCase()}\``)
  return settings.length > 0 ? ` Limited by ${settings.join(' and ')}.` : ''
}

function routeLimited(route: Route): string {
  const { config } = resolveOptions({})
  const axis = rateLimitOf(route, config)
  if (axis === undefined) return ''
  const limiters = Object.values(route.rate_limit ?? {}).map(
    (name) => `\`CELLKEEP_LIMIT_${name.toUpperCase()}\``,
  )
  const other = axis === 'both' ? ' Where one of them is off, the other axis is left.' : ''
  return ` Rate limit \`${axis}\`: ${limiters.join(' and ')}.${other}`
}

function shapes(input?: z.ZodType, output?: z.ZodType): string[] {
  const lines = [
    input && `input  ${typeText(input, 'input')}`,
    `output ${output ? typeText(output, 'output') : '(empty body)'}`,
  ]
  return ['', code(lines.filter(Boolean).join('\n'))]
}

const reasons = (listed: readonly string[] = []): string[] =>
  listed.length === 0 ? [] : [`Reasons: ${listed.map((reason) => `\`${reason}\``).join(', ')}.\n`]

const code = (text: string): string => `\`\`\`ts\n${text}\n\`\`\`\n`

type JsonSchema = {
  $ref?: string
  $defs?: Record<string, JsonSchema>
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  default?: unknown
}

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): JsonSchema =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as JsonSchema

const typeText = (schema: z.ZodType, io: 'input' | 'output'): string => written(jsonSchema(schema, io))

function shape(name: string, schema: z.ZodType): string {
  return code(`type ${name} = ${written({ ...jsonSchema(schema, 'output').$defs?.[name] })}`)
}

function written(schema: JsonSchema): string {
  const { $ref, type, anyOf, items, properties, additionalProperties } = schema
  if ($ref !== undefined) return $ref.slice('#/$defs/'.length)
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (anyOf) return anyOf.map(written).join(' | ')
  if (Array.isArray(type)) return type.map((one) => written({ ...schema, type: one })).join(' | ')
  if (items) return `${grouped(written(items))}[]`
  if (properties) return fields(properties, schema.required ?? [])
  if (typeof additionalProperties === 'object') return `{ [key: string]: ${written(additionalProperties)} }`
  if (type === 'integer') return `integer${range(schema.minimum, schema.maximum)}`
  if (type === 'string') return `string${range(schema.minLength, schema.maxLength)}`
  // Free-form data has no schema: any JSON object.
  return type ?? 'object'
}

function fields(properties: Record<string, JsonSchema>, required: string[]): string {
  const parts = Object.entries(properties).map(([name, schema]) => {
    const usual = schema.default === undefined ? '' : ` = ${JSON.stringify(schema.default)}`
    const isOptional = !required.includes(name)
    return `${name}${isOptional ? '?' : ''}: ${written(schema)}${usual}`
  })
  if (parts.length === 0) return '{}'
  const line = `{ ${parts.join(', ')} }`
  return line.length <= 90
    ? line
    : `{\n${parts.map((part) => `  ${part.replaceAll('\n', '\n  ')},`).join('\n')}\n}`
}

const grouped = (text: string): string => (/ \| /.test(text) && !text.startsWith('{') ? `(${text})` : text)

/** Bounds that are narrower than those of the type. */
function range(from: number | undefined, to: number | undefined): string {
  const isWide = (bound: number | undefined) =>
    bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER
  return isWide(from) && isWide(to) ? '' : `(${isWide(from) ? '' : from}..${isWide(to) ? '' : to})`
}

const introduction = `<!-- Generated from src/actions.ts and src/routes.ts by scripts/docs.ts; edit the declarations, not this page. -->
# API

Two surfaces: JSON-RPC 2.0 methods at \`/api/rpc\`, and REST routes for the session cookie at \`/api/account\`.
Every refusal carries a \`reason\` to switch on: [errors.md](errors.md) lists them all. Unknown input keys are
refused, unknown output keys are to be ignored. \`Uuid\` is a UUID in lower case; times are ISO 8601 in UTC with milliseconds.

## Methods

\`\`\`sh
curl http://127.0.0.1:4040/api/rpc -b cookies.txt -H 'Content-Type: application/json' \\
  -d '{"jsonrpc": "2.0", "id": 1, "method": "cell_list", "params": {"limit": 10}}'
\`\`\`

A method without side effects is also reached by GET: \`/api/rpc?method=cell_list&id=1&params={"limit":10}\`,
URL-encoded.
Several calls in one array are a batch. \`acting\` names the actor that acts; with one actor it may be left out.

Besides the reasons listed with it, a method may answer \`invalid_params\`, \`rate_limited\`,
\`service_unavailable\`, \`busy\`, \`storage_full\`, \`timeout\` and \`internal_error\`; where it takes a credential also
\`authentication_required\`, \`account_vanished\`, \`credential_type_required\`, \`token_scope_required\`,
\`insufficient_permissions\`, \`actor_required\`, \`actor_not_on_account\` and \`no_actors_on_account\`.
`

const accountIntroduction = `## Account routes

Bodies are JSON objects. A refusal is \`{"error": "<reason>", …}\` with the HTTP status of the reason. The
session travels in the cookie \`svc_session\` (HttpOnly, SameSite=Strict, Secure).
`
