import { z } from 'zod'
import type { AuditRow } from '../audit/audit.ts'
import { events } from '../events.ts'
import { toIssues } from '../wire/issues.ts'
import { checkName, refuseEntry } from './entries.ts'

/** The registry of audit event types: the service's, then the consumer's. */
export type EventTypes = {
  readonly names: readonly string[]
  has(type: string): boolean
  /** How a row breaks the rules of its type, without any of its values; undefined if it doesn't. */
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
      return broken(schemaOf(shape, outcome, metadata), metadata)
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

function broken(schema: z.ZodType, metadata: AuditRow['metadata']): string | undefined {
  try {
    const { error } = schema.safeParse(metadata)
    return error && `the metadata does not fit: ${toIssues(error).map(said).join(', ')}`
  } catch {
    return 'the schema of the metadata failed itself; it must neither throw nor be asynchronous'
  }
}

const said = ({ path, code }: { path: readonly (string | number)[]; code: string }): string =>
  `${path.join('.') || '(all)'} ${code}`
