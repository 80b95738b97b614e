import { type ParseArgsConfig, parseArgs } from 'node:util'
import { closest } from '../../wire/closest.ts'
import { type CommandIo, createOutput, type Output } from './output.ts'

/** One operator command, or a group of them such as `account`. */
export type Command = {
  /** The word after `cellkeep` or after the name of the group. */
  name: string
  /** Everything after `cellkeep`, as printed by the help. */
  usage: string
  /** One line of help. */
  summary: string
  /** More help: background and examples. */
  details?: string
  /** The commands of a group. */
  commands?: readonly Command[]
  /** Resolves to the exit code. `execute` prints the StartError or ServiceError it rejects with. */
  run(args: readonly string[], io: CommandIo): Promise<number>
}

type Options = Record<string, NonNullable<ParseArgsConfig['options']>[string] & { mayBeEmpty?: boolean }>
type ValuesOf<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>['values']

/** The parsed arguments of one call. */
export type Call<O extends Options = Options> = {
  args: readonly string[]
  options: ValuesOf<O>
  out: Output
  io: CommandIo
}

type Declaration<O extends Options> = {
  name: string
  /** The arguments after the name of the command. */
  usage?: string
  summary: string
  details?: string
  options?: O
  /** The number of arguments besides options; default: none. Infinity: `run` counts them. */
  args?: number
  /** Resolves to the exit code, or to anything else for 0. Throws `WrongUsage` for contradictory arguments. */
  run(call: Call<O>): Promise<unknown>
}

/** Invalid arguments: the message and the usage are printed, the exit code is 2. */
export class WrongUsage extends Error {}

/** Declares a command of a group; the group prints its `WrongUsage`. Every command takes `--json`. */
export function subcommand<const O extends Options = Record<never, never>>(
  group: string,
  spec: Declaration<O>,
): Command {
  const { name, summary, details, args: expected = 0 } = spec
  const options = { ...(spec.options ?? {}), json: { type: 'boolean' } } as const
  return {
    name,
    usage: [group, name, spec.usage].filter(Boolean).join(' '),
    summary,
    ...(details && { details }),
    run: async (args, io) => {
      const read = parsed(args, options)
      if (Number.isFinite(expected)) {
        const { length } = read.positionals
        if (length < expected) throw new WrongUsage(`${spec.usage?.split(' ')[length]} is missing.`)
        if (length > expected) throw new WrongUsage('Too many arguments.')
      }
      const { json, ...values } = read.values as { json?: boolean }
      const out = createOutput(io, json === true)
      const code = await spec.run({ args: read.positionals, options: values as ValuesOf<O>, out, io })
      return typeof code === 'number' ? code : 0
    },
  }
}

function parsed<O extends Options>(args: readonly string[], options: O) {
  try {
    const read = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
    // An unset variable of a script must not widen the request.
    for (const [name, value] of Object.entries(read.values))
      if (value === '' && !options[name]?.mayBeEmpty)
        throw new WrongUsage(`--${name} is empty. Give it a value, or leave it out.`)
    return read
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error
    const [, bare] = /^Option '(--[\w-]+)(?: <value>)?' argument /.exec(message) ?? []
    if (bare)
      throw new WrongUsage(`${bare} needs a value. Write one that begins with a dash as ${bare}=VALUE.`)
    const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? []
    if (unknown === undefined) throw new WrongUsage(message)
    const names = Object.keys(options).map((name) => `--${name}`)
    throw new WrongUsage(`Unknown option ${unknown}${perhaps(unknown, names)}`)
  }
}

/** The number of an option; NaN for what `Number` would take besides digits, such as blanks, which it takes for 0. */
export const numberIn = (text: string): number =>
  /^\d{1,16}(\.\d{1,16})?$/.test(text) ? Number(text) : Number.NaN

/** Ends a sentence about an unknown name, with the closest known one if there is one. */
export function perhaps(name: string, names: readonly string[]): string {
  const near = closest(name, names) ?? names.find((one) => one.startsWith(name) && name.length > 2)
  return near === undefined ? '.' : `; did you mean ${near}?`
}

/** A command outside a group, declared like one in a group. */
export const command = <const O extends Options = Record<never, never>>(spec: Declaration<O>): Command =>
  alone(subcommand('', spec))

export const alone = (one: Command): Command => ({
  ...one,
  run: (args, io) => withUsage([one], args, io, () => one.run(args, io)),
})

/** Runs a command; prints its `WrongUsage` with the usage of these commands. */
export async function withUsage(
  forms: readonly Command[],
  args: readonly string[],
  io: CommandIo,
  run: () => Promise<number>,
): Promise<number> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error
    return wrongUsage(forms, args, io, error.message)
  }
}

/** Prints a message and the usage of commands, and returns the exit code of wrong usage. */
export function wrongUsage(
  commands: Pick<Command, 'usage'> | readonly Pick<Command, 'usage'>[],
  args: readonly string[],
  { stderr }: CommandIo,
  message: string,
): number {
  const usage = [commands].flat().map((one) => `cellkeep ${one.usage}`)
  if (args.includes('--json')) stderr.write(`${JSON.stringify({ reason: 'wrong_usage', message, usage })}\n`)
  else stderr.write([message, ...usage.map((one) => `Usage: ${one}`), ''].join('\n'))
  return 2
}
