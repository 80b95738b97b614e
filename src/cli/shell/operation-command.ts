import type { App } from '../../core/app.ts'
import type { AnyCommand, Operation } from '../../core/operation.ts'
import { ServiceError } from '../../errors.ts'
import type { Reason } from '../../reasons.ts'
import { type CommandService, cli, endedBy, withService } from '../with-service.ts'
import { type Choice, chosen } from './choose.ts'
import { type Call, type Command, subcommand, WrongUsage } from './command.ts'
import { confirmed } from './confirm.ts'
import { writeLines } from './lines.ts'
import { pagesOf, type Row } from './output.ts'
import { meaningOf } from './refusal.ts'
import { type Argument, argumentOf, optionsOf, usageOf, valueFrom, wordsOf } from './usage.ts'

type Input = Record<string, unknown>
type Run = (app: App, input: Input, operator: typeof cli) => Promise<unknown>
/** An operation that declares a command. */
type Commanded = Operation & { command: AnyCommand }

/** The command of an operation: its arguments become the input, the result becomes text. */
export function operationCommand(operation: Commanded): Command {
  const { command, doc, input, errors } = operation
  const given = Object.entries(command.args ?? {}).map(([key, source]) =>
    argumentOf(key, source as Parameters<typeof argumentOf>[1], input.shape[key]),
  )
  const [group = '', ...own] = command.name.split(' ')
  const flags = own.filter((text) => text.startsWith('--')).map((flag) => flag.slice(2))
  const asked = [...flags, ...(command.confirm ? ['yes'] : [])]
  const more = [command.confirm && '[--yes]', command.lines && '[--out FILE]'].filter(Boolean)
  return subcommand(own.length > 0 ? group : '', {
    name: own.join(' ') || group,
    usage: [usageOf(given), ...more].filter(Boolean).join(' '),
    summary: doc,
    details: [command.details, refusalsOf(errors)].filter(Boolean).join('\n\n'),
    options: {
      ...optionsOf(given),
      ...Object.fromEntries(asked.map((flag) => [flag, { type: 'boolean' as const }])),
      ...(command.lines && { out: { type: 'string' as const } }),
    },
    args: Number.POSITIVE_INFINITY,
    run: (call) => run(operation as unknown as Run & Commanded, given, call),
  })
}

export const isCommanded = (operation: Operation): operation is Commanded => operation.command !== undefined

async function run(operation: Run & Commanded, given: readonly Argument[], call: Call): Promise<number> {
  const { command } = operation
  const words = wordsOf(given, call.args, call.options)
  // Arguments are parsed before the database is opened, so that a typo fails at once.
  const literal = literalsOf(given, words)
  const interrupt = new AbortController()
  const work = async ({ app }: CommandService): Promise<number> => {
    const said: Choice = { who: '', words, io: call.io }
    const input: Input = { ...literal }
    for (const { key, source, isRequired } of given) {
      if (typeof source !== 'object' || !('from' in source)) continue
      if (isRequired || words.REF !== undefined) input[key] = await chosen(source.from, app, said)
    }
    if (command.confirm && call.options.yes !== true) await confirmed(call.io, command.confirm)
    try {
      return await show(operation, app, input, said, call, interrupt.signal)
    } catch (error) {
      throw call.out.json ? error : inWords(error, given, input)
    }
  }
  // Other commands have nothing to remove, and end at once.
  if (call.options.out === undefined) return await withService(call.io, work)
  return await endedBy(interrupt, 'no file was made', withService(call.io, work, { interrupt }))
}

/** The keys of the input that follow from the arguments alone, without a look-up. */
function literalsOf(given: readonly Argument[], words: Choice['words']): Input {
  const input: Input = {}
  for (const argument of given) {
    const { key, source } = argument
    if (typeof source === 'string') input[key] = valueFrom(argument, words)
    else if ('fixed' in source) input[key] = source.fixed
    else if ('parse' in source) input[key] = parsed(() => source.parse(words))
  }
  return input
}

function parsed(parse: () => unknown): unknown {
  try {
    return parse()
  } catch (error) {
    throw error instanceof TypeError ? new WrongUsage(error.message) : error
  }
}

/** Prints a table (paged or whole), a stream of lines, or one result with its phrase. */
async function show(
  operation: Run & Commanded,
  app: App,
  input: Input,
  said: Choice,
  { out, io, options }: Call,
  interrupt: AbortSignal,
): Promise<number> {
  const { table, lines, done, phrase, failed } = operation.command
  const isPaged = 'cursor' in operation.input.shape
  if (table && isPaged) {
    const pages = pagesOf(async (cursor) => {
      const page = await operation(app, { ...input, limit: 200, cursor }, cli)
      return { rows: rowsOf(page), next_cursor: (page as { next_cursor: string | null }).next_cursor }
    })
    await out.table(pages, table, app.db.clock)
    return 0
  }
  const result = await operation(app, input, cli)
  if (table) await out.table(rowsOf(result), table, app.db.clock)
  const rows = result as AsyncIterable<unknown>
  if (lines) await writeLines(rows, (last) => lines(last, input), options.out, io, interrupt)
  if (table || lines) return 0
  const ids = Object.entries(input).filter(([key, value]) => key.endsWith('_id') && typeof value === 'string')
  const json = {
    ...Object.fromEntries(ids),
    ...(typeof done === 'function' ? done(input) : done),
    ...(result as object | undefined),
  }
  out.result(json, phrase?.(result, { ...input, ...said }) ?? 'Done.')
  return failed?.(result) ? 1 : 0
}

const rowsOf = (result: unknown): readonly Row[] =>
  Array.isArray(result) ? result : (Object.values(result as object).find(Array.isArray) ?? [])

/** Makes issues name the arguments as typed, instead of the keys of the input. */
function inWords(error: unknown, given: readonly Argument[], input: Input): unknown {
  if (!(error instanceof ServiceError) || !Array.isArray(error.data.issues)) return error
  const issues = error.data.issues.map((issue: { path: (string | number)[] }) => {
    const [key, ...path] = issue.path
    const argument = given.find((one) => one.key === key)
    const name = argument?.parts[0]?.name ?? key
    if (typeof argument?.source === 'object' && 'parse' in argument.source) {
      // The shape of the input is made from the argument, so the wrong value is shown, not its path.
      const value = issue.path.reduce<unknown>((part, step) => (part as Input | undefined)?.[step], input)
      return { ...issue, path: [typeof value === 'object' ? name : `${name} ${value}`] }
    }
    return { ...issue, path: [name, ...path].filter((part) => part !== undefined) }
  })
  return new ServiceError(error.code, { ...error.data, issues }, error.status)
}

function refusalsOf(errors: readonly Reason[]): string | undefined {
  if (errors.length === 0) return undefined
  return ['Possible refusals:', ...errors.map((reason) => `  ${meaningOf(reason)}`)].join('\n')
}
