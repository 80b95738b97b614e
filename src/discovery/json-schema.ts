import { z } from 'zod'
import { ActorLabel } from '../actors/actors.ts'
import { AuditEvent } from '../audit/entry.ts'
import { Cell } from '../cells/cells.ts'
import { Field, Item } from '../cells/edges/edges.ts'
import { CellGrant } from '../cells/grants/grants.ts'
import { Invite } from '../invites/invites.ts'
import { PendingOffer } from '../offers/offers.ts'
import { RoleGrantSummary } from '../roles/grants.ts'
import { TokenEntry } from '../tokens/tokens.ts'
import { Offer } from '../wire/offer.ts'
import { wordsOf } from '../wire/rules.ts'
import type { JsonSchema } from '../wire/type-text.ts'
import { Uuid } from '../wire/types.ts'

/** Shapes that are written once, under `#/components/schemas/`, and referred to by name. */
const named = new Map<z.core.$ZodType, string>(
  Object.entries({
    ActorLabel,
    AuditEvent,
    Cell,
    CellGrant,
    Field,
    Invite,
    Item,
    Offer,
    PendingOffer,
    RoleGrantSummary,
    TokenEntry,
    Uuid,
  }).map(([name, schema]) => [schema, name]),
)

const refTo = (name: string): string => `#/components/schemas/${name}`

/** Converts schemas, and collects the named shapes that they refer to. */
export class Schemas {
  readonly shapes: Record<string, JsonSchema> = {}
  readonly #target: 'draft-7' | 'draft-2020-12'

  constructor(target: 'draft-7' | 'draft-2020-12') {
    this.#target = target
  }

  of(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const { $schema: _, ...converted } = z.toJSONSchema(schema, {
      io,
      target: this.#target,
      // Free-form data has no schema.
      unrepresentable: 'any',
      override: ({ zodSchema, jsonSchema }) => this.#refine(zodSchema, jsonSchema as JsonSchema, io),
    })
    return converted as JsonSchema
  }

  #refine(zodSchema: z.core.$ZodType, schema: JsonSchema, io: 'input' | 'output'): void {
    // zod wraps a reference that it copied: { allOf: [{ $ref }] }.
    const [only, more] = schema.allOf ?? []
    if (only?.$ref !== undefined && more === undefined) {
      delete schema.allOf
      schema.$ref = only.$ref
    }
    if (Math.abs(schema.minimum ?? 0) === Number.MAX_SAFE_INTEGER) delete schema.minimum
    if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
    const rule = schema.pattern === undefined ? undefined : wordsOf(schema.pattern)
    if (rule !== undefined) schema.description ??= rule
    if (io === 'output') {
      // Later versions may answer with more keys.
      if (schema.additionalProperties === false) delete schema.additionalProperties
      for (const [name, inner] of Object.entries(schema.properties ?? {}))
        if (name.endsWith('_at')) inner.format = 'date-time'
    }
    const name = named.get(zodSchema)
    if (name === undefined) return
    this.shapes[name] ??= { ...schema }
    for (const key of Object.keys(schema)) delete schema[key as keyof JsonSchema]
    schema.$ref = refTo(name)
  }
}
