import { z } from 'zod'

/** The part of JSON Schema that our schemas use. */
export type JsonSchema = {
  $ref?: string
  $defs?: Record<string, JsonSchema>
  type?: string | string[]
  description?: string
  format?: string
  pattern?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  default?: unknown
}

/**
 * The shapes that a union accepts, as text. A recursive shape appears as `…`, because zod's name of it means nothing.
 */
export function unionText(schema: z.core.$ZodType): string {
  const made = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  const spelled = (one: JsonSchema): JsonSchema => made.$defs?.[nameOf(one.$ref ?? '')] ?? one
  const shape = spelled(made)
  return (shape.anyOf ?? shape.oneOf ?? [shape]).map((one) => typeText(spelled(one))).join(' | ')
}

const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1)

/** A JSON schema as people write types: `{ kind: "ttl", days: integer(1..36500) }`. */
export function typeText(schema: JsonSchema): string {
  const { $ref, type, anyOf, oneOf, items, properties, additionalProperties } = schema
  if ($ref !== undefined) return /^#$|\/__schema\d+$/.test($ref) ? '…' : nameOf($ref)
  if ('const' in schema) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  const options = anyOf ?? oneOf
  if (options) return options.map(typeText).join(' | ')
  if (Array.isArray(type)) return type.map((one) => typeText({ ...schema, type: one })).join(' | ')
  if (items) return `${grouped(typeText(items))}[]${range(schema.minItems, schema.maxItems)}`
  if (properties) return fields(properties, schema.required ?? [])
  if (typeof additionalProperties === 'object') return `{ [key: string]: ${typeText(additionalProperties)} }`
  if (type === 'integer') return `integer${range(schema.minimum, schema.maximum)}`
  if (type === 'string') return stringText(schema)
  return type ?? 'unknown'
}

function stringText({ format, minLength, maxLength }: JsonSchema): string {
  if (format === 'uuid') return 'Uuid'
  return `${format === 'date-time' ? 'Time' : 'string'}${range(minLength, maxLength)}`
}

function fields(properties: Record<string, JsonSchema>, required: string[]): string {
  const parts = Object.entries(properties).map(([name, schema]) => {
    const byDefault = schema.default === undefined ? '' : ` = ${JSON.stringify(schema.default)}`
    return `${name}${required.includes(name) ? '' : '?'}: ${typeText(schema)}${byDefault}`
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
