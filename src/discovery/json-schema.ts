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

/** The key of the definition that a reference of zod names; `#` is the schema itself. */
const keyOf = (ref: string): string =>
  ref
    .replace(/^#\/(\$defs|definitions)\//, '')
    .replaceAll('~1', '/')
    .replaceAll('~0', '~')

/** The definitions that zod keeps within a schema: shapes with an `id`, and recursive ones. */
type Definitions = Record<string, JsonSchema>

/** Converts schemas, and collects the named shapes that they refer to. */
export class Schemas {
  /** Without a prototype: an id may be `constructor`. */
  readonly shapes: Record<string, JsonSchema> = Object.create(null)
  readonly #target: 'draft-7' | 'draft-2020-12'
  /** The names of definitions by their content, which methods share. */
  readonly #defined = new Map<string, string>()

  constructor(target: 'draft-7' | 'draft-2020-12') {
    this.#target = target
  }

  of(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const {
      $schema: _,
      $defs,
      definitions = $defs,
      ...converted
    } = z.toJSONSchema(schema, {
      io,
      target: this.#target,
      // Free-form data has no schema.
      unrepresentable: 'any',
      override: ({ zodSchema, jsonSchema }) => this.#refine(zodSchema, jsonSchema as JsonSchema, io),
    })
    return this.#share(converted as JsonSchema, (definitions ?? {}) as Definitions)
  }

  /** The shape that a reference names; any other schema itself. */
  resolve(schema: JsonSchema): JsonSchema {
    return (schema.$ref && this.shapes[schema.$ref.slice(refTo('').length)]) || schema
  }

  /** A reference counts from the root of the document, so definitions become shared shapes of the document. */
  #share(schema: JsonSchema, definitions: Definitions): JsonSchema {
    const holdsItself = JSON.stringify(schema).includes('"$ref":"#"')
    const own = holdsItself ? { ...definitions, '#': schema } : definitions
    const names = new Map(Object.keys(own).map((key) => [key, this.#nameOf(key, own)]))
    const refer = (of: JsonSchema): JsonSchema =>
      JSON.parse(JSON.stringify(of), (member, value) => {
        const name = member === '$ref' && typeof value === 'string' && names.get(keyOf(value))
        return name ? refTo(name) : value
      })
    for (const [key, name] of names) this.shapes[name] ??= refer(own[key] as JsonSchema)
    return names.size === 0 ? schema : refer(schema)
  }

  #nameOf(key: string, own: Definitions): string {
    const text = JSON.stringify(own[key])
    // A definition that refers to others equals another only if those are equal too.
    const what = JSON.stringify([key, text.includes('"$ref":"#') ? own : text])
    const name = this.#defined.get(what) ?? this.#freeName(key)
    this.#defined.set(what, name)
    return name
  }

  /** The `id` of a shape, else `Shape`; a number is appended if the name is taken. */
  #freeName(key: string): string {
    const word = /^__|^#$/.test(key) ? 'Shape' : key.replace(/[^A-Za-z0-9._-]/g, '_')
    const taken = new Set([...named.values(), ...this.#defined.values()])
    for (let n = 1; ; n++) {
      const name = n === 1 ? word : `${word}${n}`
      if (!taken.has(name)) return name
    }
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
