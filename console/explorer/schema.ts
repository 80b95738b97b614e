/** The part of JSON Schema that the description of the methods uses. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
  default?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
}
export type Shapes = Record<string, Schema>

/** How a parameter is asked for. */
export type Input = { name: string; isRequired: boolean; isNullable: boolean; hint: string } & (
  | { kind: 'text'; maxLength: number | undefined }
  | { kind: 'number'; min: number | undefined; max: number | undefined }
  | { kind: 'choice'; choices: readonly (string | boolean)[] }
  | { kind: 'group'; inputs: readonly Input[] }
  | { kind: 'json' }
)

/** One level of objects has its own fields; deeper objects, and unions, are written as JSON. */
export function inputOf(name: string, sent: Schema, isRequired: boolean, shapes: Shapes, depth = 0): Input {
  const { schema, isNullable } = withoutNull(resolved(sent, shapes), shapes)
  const { type, description = '', maxLength } = schema
  const hint = sent.description ?? description
  const common = { name, isRequired, isNullable, hint }
  const choices = schema.const === undefined ? schema.enum : [schema.const]
  if (choices?.every((one) => typeof one === 'string')) return { ...common, kind: 'choice', choices }
  if (type === 'boolean') return { ...common, kind: 'choice', choices: [true, false] }
  if (type === 'string') return { ...common, kind: 'text', maxLength }
  if (type === 'integer' || type === 'number')
    return { ...common, kind: 'number', min: schema.minimum, max: schema.maximum }
  if (type === 'object' && schema.properties && depth === 0)
    return {
      ...common,
      kind: 'group',
      inputs: Object.entries(schema.properties).map(([key, own]) =>
        inputOf(key, own, schema.required?.includes(key) ?? false, shapes, 1),
      ),
    }
  return { ...common, kind: 'json' }
}

const resolved = (schema: Schema, shapes: Shapes): Schema =>
  (schema.$ref ? shapes[schema.$ref.split('/').at(-1) ?? ''] : schema) ?? {}

function withoutNull(schema: Schema, shapes: Shapes): { schema: Schema; isNullable: boolean } {
  const { type, anyOf } = schema
  if (Array.isArray(type) && type.length === 2 && type.includes('null'))
    return { schema: { ...schema, type: type.find((one) => one !== 'null') as string }, isNullable: true }
  const others = anyOf?.filter((one) => one.type !== 'null')
  return others?.length === 1 && anyOf?.length === 2
    ? { schema: resolved(others[0] as Schema, shapes), isNullable: true }
    : { schema, isNullable: false }
}

/** The typed text by the path of its field: empty is left out, null is `null`. */
export type Typed = Record<string, string | null>
export type Fault = { path: string; message: string }

/** The parameters as they are sent, or the first field that cannot be read. */
export function paramsOf(
  inputs: readonly Input[],
  typed: Typed,
  prefix = '',
): { params: Record<string, unknown>; fault?: Fault } {
  const params: Record<string, unknown> = {}
  for (const input of inputs) {
    const path = prefix + input.name
    const text = typed[path] ?? ''
    if (typed[path] === null) params[input.name] = null
    else if (input.kind === 'group') {
      const { params: inner, fault } = paramsOf(input.inputs, typed, `${path}.`)
      if (fault) return { params, fault }
      if (input.isRequired || Object.keys(inner).length > 0) params[input.name] = inner
    } else if (text !== '')
      try {
        params[input.name] = read(input, text)
      } catch (error) {
        return { params, fault: { path, message: (error as Error).message } }
      }
  }
  return { params }
}

function read({ kind }: Input, text: string): unknown {
  if (kind === 'text') return text
  if (kind === 'choice') return text === 'true' ? true : text === 'false' ? false : text
  const value: unknown = JSON.parse(text)
  if (kind === 'number' && typeof value !== 'number') throw new SyntaxError(text)
  return value
}
