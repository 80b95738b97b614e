import { type ParseArgsConfig, parseArgs } from 'node:util'
import { closest } from '../config/closest.ts'
import type { CommandIo } from './io.ts'
import { createOutput, type Output } from './output.ts'

/** One operator command, or a group of them such as `account`. */
export type Command = {
  /** The word after `cellkeep`, or after that of its group. */
  name: string
  /** Everything after `cellkeep`, as the help prints it. */
  usage: string
  /** One line of help. */
  summary: string
  /** The rest of its help: what to know, and examples. */
  details?: string
  /** The commands of a group. */
  commands?: readonly Command[]
  /** Resolves to the exit code; a StartError or ServiceError it rejects with is printed by `execute`. */
  run(args: readonly string[], io: CommandIo): Promise<number>
}

type Options = NonNullable<ParseArgsConfig['options']>
type ValuesOf<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>['values']

/** The arguments of one call, read by its declaration. */
export type Call<O extends Options = Options> = {
  args: readonly string[]
  options: ValuesOf<O>
  out: Output
  io: CommandIo
}

type Declaration<O extends Options> = {
  name: string
  /** What follows the words of the command. */
  usage?: string
  summary: string
  details?: string
  options?: O
  /** How many arguments besides options; infinite: it counts them itself. Default none. */
  args?: number
  /** A number is the exit code, anything else 0. Throws `WrongUsage` where arguments contradict each other. */
  run(call: Call<O>): Promise<unknown>
}

/** Arguments that make no sense; the usage lines follow the message. Exit code 2. */
export class WrongUsage extends Error {}

/** Declares a command of a group, which says what `WrongUsage` it throws. Every one takes `--json`. */
export function subcommand<const O extends Options = Record<never, never>>(
  group: string,
  spec: Declaration<O>,
): Command {
  const { name, summary, details, args: most = 0 } = spec
  const options = { ...(spec.options ?? {}), json: { type: 'boolean' } } as const
  return {
    name,
    usage: [group, name, spec.usage].filter(Boolean).join(' '),
    summary,
    ...(details && { details }),
    run: async (args, io) => {
      const read = parsed(args, options)
      if (Number.isFinite(most)) {
        if (read.positionals.length < most) throw new WrongUsage('Something is missing.')
        if (read.positionals.length > most) throw new WrongUsage('That is one argument too many.')
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
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!code?.startsWith('ERR_PARSE_ARGS')) throw error
    const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? []
    if (unknown === undefined) throw new WrongUsage(message)
    const names = Object.keys(options).map((name) => `--${name}`)
    throw new WrongUsage(`There is no option ${unknown} here${perhaps(unknown, names)}`)
  }
}

/** Ends a sentence about a name that is unknown. */
export function perhaps(name: string, names: readonly string[]): string {
  const near = closest(name, names) ?? names.find((one) => one.startsWith(name) && name.length > 2)
  return near === undefined ? '.' : `; did you mean ${near}?`
}

/** A group: its first argument says which of its commands runs; a flag tells those with the same word apart. */
export function group(spec: {
  name: string
  summary: string
  details?: string
  commands: readonly Command[]
}): Command {
  const { name, commands } = spec
  const words = [...new Set(commands.map(wordOf))]
  return {
    ...spec,
    usage: `${name} ${words.join('|')}`,
    run: async ([word = '', ...args], io) => {
      const forms = commands.filter((one) => wordOf(one) === word)
      const flagged = forms.find(
        (one) => flagsOf(one).length > 0 && flagsOf(one).every((flag) => args.includes(flag)),
      )
      const form = flagged ?? forms.find((one) => flagsOf(one).length === 0)
      if (form) return await saidWrong(forms, io, () => form.run(args, io))
      if (word !== '') io.stderr.write(`There is no command "${name} ${word}"${perhaps(word, words)}\n\n`)
      return wrongUsage(commands, io)
    },
  }
}

export const wordOf = ({ name }: Command): string => name.split(' ')[0] ?? ''
const flagsOf = ({ name }: Command): string[] => name.split(' ').slice(1)

/** A command that stands alone, declared like one of a group. */
export const command = <const O extends Options = Record<never, never>>(spec: Declaration<O>): Command =>
  alone(subcommand('', spec))

export const alone = (one: Command): Command => ({
  ...one,
  run: (args, io) => saidWrong([one], io, () => one.run(args, io)),
})

async function saidWrong(
  forms: readonly Command[],
  io: CommandIo,
  run: () => Promise<number>,
): Promise<number> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof WrongUsage)) throw error
    io.stderr.write(`${error.message}\n`)
    return wrongUsage(forms, io)
  }
}

/** Says how commands are written; the exit code of wrong usage. */
export function wrongUsage(
  commands: Pick<Command, 'usage'> | readonly Pick<Command, 'usage'>[],
  io: CommandIo,
): number {
  for (const { usage } of [commands].flat()) io.stderr.write(`Usage: cellkeep ${usage}\n`)
  return 2
}
