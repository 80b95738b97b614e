import { ServiceError, StartError } from '../errors.ts'
import { version } from '../wire/version.ts'
import { perhaps } from './command.ts'
import { commands } from './groups.ts'
import { help } from './help.ts'
import type { CommandIo } from './output.ts'
import { refusalText } from './refusal.ts'

/** The command line: sets the exit code and never exits the process itself. */
export async function run(argv: readonly string[]): Promise<void> {
  const { stdin, stdout, stderr, env } = process
  let isCut = false
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    // EPIPE means that the reader stopped, as `head` does, which is no failure. A full disk is.
    if (code === 'EPIPE' || isCut) return
    isCut = true
    stderr.write(`The output could not be written: ${message}\n`)
  })
  // Without a listener, a broken pipe on standard error would end the server.
  stderr.on('error', () => {})
  const code = await execute(argv, { stdin, stdout, stderr, env, cwd: process.cwd() })
  process.exitCode = code || Number(isCut)
}

export async function execute([name = 'help', ...args]: readonly string[], io: CommandIo): Promise<number> {
  if (['help', '--help', '-h'].includes(name)) return help(args, io)
  if (['version', '--version', '-v'].includes(name)) {
    io.stdout.write(`${version}\n`)
    return 0
  }
  const command = commands.find((one) => one.name === name)
  if (!command) {
    const names = commands.map((one) => one.name)
    io.stderr.write(`There is no command "${name}"${perhaps(name, names)} \`cellkeep help\` lists them.\n`)
    return 2
  }
  const asksHelp = args.findIndex((arg) => arg === '--help' || arg === '-h')
  if (asksHelp >= 0) return help([name, ...args.slice(0, asksHelp)], io)
  try {
    return await command.run(args, io)
  } catch (error) {
    if (error instanceof StartError) {
      io.stderr.write(`${error.message}\n`)
      return error.exitCode
    }
    if (error instanceof ServiceError) {
      io.stderr.write(refusalText(error, args.includes('--json')))
      return error.data.reason === 'service_unavailable' ? 3 : 1
    }
    // Not rethrown: a listener for uncaught exceptions would turn it into exit code 0.
    io.stderr.write(
      `Cellkeep failed unexpectedly. This is a bug in Cellkeep or in the config file.\n${stackOf(error)}\n`,
    )
    return 1
  }
}

const stackOf = (error: unknown): string => (error instanceof Error && error.stack) || String(error)
