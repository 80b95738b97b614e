import { yieldToOthers } from '../backup/priority.ts'
import { version } from '../wire/version.ts'
import type { CommandIo } from './shell/output.ts'

/** The command line: sets the exit code and never exits the process itself. */
export async function run(argv: readonly string[]): Promise<void> {
  const { stdin, stdout, stderr, env } = process
  const refuse = (reason: string, message: string): void =>
    void stderr.write(`${argv.includes('--json') ? JSON.stringify({ reason, message }) : message}\n`)
  const cut = new AbortController()
  let isCut = false
  stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    cut.abort(code)
    // EPIPE means that the reader stopped, as `head` does, which is no failure. A full disk is.
    if (code === 'EPIPE' || isCut) return
    isCut = true
    // The last line may fail only after the command has ended.
    process.exitCode ||= 1
    refuse('output_unwritable', `The output could not be written: ${message}`)
  })
  // Without a listener, a broken pipe on standard error would end the server.
  stderr.on('error', () => {})
  const cwd = workingDirectory()
  if (cwd === undefined) {
    process.exitCode = 1
    return refuse(
      'no_working_directory',
      'The working directory does not exist any more. Change to another one.',
    )
  }
  const io = { stdin, stdout, stderr, env, cwd, cut: cut.signal, yield: yieldToOthers }
  const code = await execute(argv, io)
  process.exitCode = code || Number(isCut)
}

/** Undefined if it was removed, such as that of a release that another one has replaced. */
function workingDirectory(): string | undefined {
  try {
    return process.cwd()
  } catch {
    return undefined
  }
}

/** Runs one call of `cellkeep`; resolves to the exit code. */
export async function execute(argv: readonly string[], io: CommandIo): Promise<number> {
  const [name = ''] = argv
  if (['version', '--version', '-v'].includes(name)) {
    io.stdout.write(`${version}\n`)
    return 0
  }
  // Loaded late: the commands load the whole product, and monitors and installers only ask for the version.
  const { dispatch } = await import('./shell/dispatch.ts')
  return await dispatch(argv, io)
}
