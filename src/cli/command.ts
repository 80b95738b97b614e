import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Environment } from '../config.ts'
import { createOutput, type Output } from './output.ts'

/** What a command may touch of its process. */
export type CommandIo = {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown }
  env: Environment
  cwd: string
}

/** One operator command (contract 2, section 19), or a group of them such as `account`. */
export type Command = {
  /** The word after `cellkeep`. */
  name: string
  /** Everything after `cellkeep`, as the help prints it. */
  usage: string
  /** One line of help. */
  summary: string
  /** The rest of its help: what to know, and examples. */
  details?: string
  /** The commands of a group. */
  commands?: readonly Subcommand[]
  /** Resolves to the exit code; a StartError or ServiceError it rejects with is printed by `execute`. */
  run(args: readonly string[], io: CommandIo): Promise<number>
}

type Options = NonNullable<ParseArgsConfig['options']>
type ValuesOf<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; strict: true }>
>['values']

export type Subcommand = {
  /** Its words after those of the group; the whole usage begins with them. */
  name: string
  usage: string
  summary: string
  details?: string
  run(args: readonly string[], io: CommandIo): Promise<number>
}

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
  /** How many arguments besides options: exactly, or from and to. Default none. */
  args?: number | readonly [number, number]
  /** A number is the exit code, anything else 0. Throws `WrongUsage` where arguments contradict each other. */
  run(call: Call<O>): Promise<unknown>
}

/** Arguments that parse but make no sense; the message continues the usage line. Exit code 2. */
export class WrongUsage extends Error {}

/** Declares a command of a group. Every one takes `--json`. */
export function subcommand<const O extends Options = Record<never, never>>(
  group: string,
  spec: Declaration<O>,
): Subcommand {
  const usage = [group, spec.name, spec.usage].filter(Boolean).join(' ')
  const [least, most] = typeof spec.args === 'object' ? spec.args : [spec.args ?? 0, spec.args ?? 0]
  return {
    name: spec.name,
    usage,
    summary: spec.summary,
    ...(spec.details && { details: spec.details }),
    run: async (args, io) => {
      try {
        const options = { ...(spec.options ?? {}), json: { type: 'boolean' } } as const
        const read = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
        if (read.positionals.length < least) throw new WrongUsage('Something is missing.')
        if (read.positionals.length > most) throw new WrongUsage('That is one argument too many.')
        const { json, ...values } = read.values as { json?: boolean }
        const out = createOutput(io, json === true)
        const code = await spec.run({ args: read.positionals, options: values as ValuesOf<O>, out, io })
        return typeof code === 'number' ? code : 0
      } catch (error) {
        if (!(error instanceof WrongUsage) && !isParseError(error)) throw error
        io.stderr.write(`${(error as Error).message}\nUsage: cellkeep ${usage}\n`)
        return 2
      }
    },
  }
}

/** A group: its first argument says which of its commands runs. */
export function group(spec: {
  name: string
  summary: string
  details?: string
  commands: readonly Subcommand[]
}): Command {
  const { name, commands } = spec
  return {
    ...spec,
    usage: `${name} ${commands.map((one) => one.name).join('|')}`,
    run: async ([word, ...args], io) => {
      const command = commands.find((one) => one.name === word)
      if (command) return await command.run(args, io)
      if (word !== undefined) io.stderr.write(`There is no command "${name} ${word}".\n\n`)
      for (const one of commands) io.stderr.write(`Usage: cellkeep ${one.usage}\n`)
      return 2
    },
  }
}

/** A command that stands alone, declared like one of a group. */
export function command<const O extends Options = Record<never, never>>(spec: Declaration<O>): Command {
  const { usage, run } = subcommand('', spec)
  const { name, summary, details } = spec
  return { name, usage, summary, ...(details && { details }), run }
}

/** Says how the command is written; resolves to the exit code of wrong usage. */
export function wrongUsage(command: Pick<Command, 'usage'>, io: CommandIo): number {
  io.stderr.write(`Usage: cellkeep ${command.usage}\n`)
  return 2
}

const isParseError = (error: unknown): boolean =>
  error instanceof TypeError && String((error as { code?: string }).code).startsWith('ERR_PARSE_ARGS')
