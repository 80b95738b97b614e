import { z } from 'zod'
import type { AuditRow } from '../audit/audit.ts'
import { events } from '../events.ts'
import { notifications } from '../notifications.ts'
import { meant } from '../wire/closest.ts'
import { isPlainObject } from '../wire/input.ts'
import { toIssues } from '../wire/issues.ts'
import { parseJson } from '../wire/parse-json.ts'
import { checkName, refuseEntry } from './entries.ts'

/** The registry of audit event types: the service's, then the consumer's. */
export type EventTypes = {
  readonly names: readonly string[]
  has(type: string): boolean
  /** How a row breaks the rules of its type, without any of its values; undefined if it does not. */
  flaw(row: Pick<AuditRow, 'event_type' | 'outcome' | 'metadata'>): string | undefined
}

type Shape = { success: z.ZodType; failure?: z.ZodType }

// A plain type: with the type of `events`, the compiler would compare every schema with every other.
const builtin: Readonly<Record<string, Shape>> = events

export function createEventTypes(own: Readonly<Record<string, z.ZodType | null>>): EventTypes {
  const shapes = new Map(Object.entries(builtin))
  for (const [type, schema] of Object.entries(own)) {
    checkName('audit event type', type, { builtin: (it) => Object.hasOwn(builtin, it), own: () => false })
    if (schema !== null && !(schema instanceof z.ZodType))
      refuseEntry('audit event type', type)('must have the schema of its metadata, or null for none.')
    shapes.set(type, { success: schema ?? z.null() })
  }
  return {
    names: [...shapes.keys()],
    has: (type) => shapes.has(type),
    flaw: ({ event_type, outcome, metadata }) => {
      const shape = shapes.get(event_type)
      if (!shape) return 'the type is not registered'
      return broken('metadata', schemaOf(shape, outcome, metadata), metadata)
    },
  }
}

/**
 * A refusal has the failure shape. A failed commit leaves the metadata that the success would have had, or only the
 * reason `rolled_back`.
 */
function schemaOf(
  { success, failure }: Shape,
  outcome: AuditRow['outcome'],
  metadata: AuditRow['metadata'],
): z.ZodType {
  if (outcome === 'success' || metadata === null || !('reason' in metadata)) return success
  return metadata.reason === 'rolled_back' ? undone : (failure ?? success)
}

const undone = z.strictObject({ reason: z.literal('rolled_back'), via: z.string().optional() })

const misfit = { metadata: 'the metadata does not fit', params: 'the params do not fit' }

function broken(what: 'metadata' | 'params', schema: z.ZodType, value: unknown): string | undefined {
  try {
    const { error } = schema.safeParse(value)
    return error && `${misfit[what]}: ${toIssues(error).map(said).join(', ')}`
  } catch {
    return `the schema of the ${what} failed; it must not throw or be asynchronous`
  }
}

const said = ({ path, code }: { path: readonly (string | number)[]; code: string }): string =>
  `${path.join('.') || '(all)'} ${code}`

/** The registry of notifications: the service's, then the consumer's. */
export type NotificationTypes = {
  readonly schemas: ReadonlyMap<string, z.ZodType>
  /** How a notification breaks the rules of its type, without any of its values; undefined if it does not. */
  flaw(method: string, params: unknown): string | undefined
  /** A copy of the params as they are sent. Throws if the notification may not be sent. */
  sendable(method: string, params: unknown): object
}

/** Max bytes of the params of a consumer's notification as JSON. */
const paramsMax = 8192
/** Events that the live client itself emits. */
const clientEvents = ['open', 'lost', 'closed']
/** Schemas that no params can fit: `notify` takes an object. */
const noObjects = ['string', 'number', 'boolean', 'bigint', 'array', 'null', 'undefined', 'enum', 'literal']

export function createNotificationTypes(own: Readonly<Record<string, z.ZodType>>): NotificationTypes {
  const schemas = new Map<string, z.ZodType>(Object.entries(notifications))
  for (const [method, schema] of Object.entries(own)) {
    checkName('notification', method, { builtin: (it) => Object.hasOwn(notifications, it), own: () => false })
    const refuse = refuseEntry('notification', method)
    if (clientEvents.includes(method)) refuse('has the name of an event of the live client; choose another.')
    if (!(schema instanceof z.ZodType)) refuse('must have the schema of its params.')
    if (noObjects.includes(schema.def.type))
      refuse('must have the schema of an object, such as z.strictObject.')
    schemas.set(method, schema)
  }
  const flaw: NotificationTypes['flaw'] = (method, params) => {
    const schema = schemas.get(method)
    if (!schema) return `it is not declared in notifications${meant(method, schemas.keys())}`
    return isPlainObject(params) ? broken('params', schema, params) : 'the params must be an object'
  }
  return {
    schemas,
    flaw,
    sendable(method, params) {
      if (Object.hasOwn(notifications, method)) return params as object
      const found = flaw(method, params)
      const text = found === undefined ? JSON.stringify(params) : ''
      const size = Buffer.byteLength(text)
      const why = size > paramsMax ? `the params have ${size} bytes as JSON, of ${paramsMax} at most` : found
      if (why) throw new TypeError(`The notification ${method} cannot be sent: ${why}`)
      return parseJson(text) as object
    },
  }
}
