import { isUtf8 } from 'node:buffer'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { StartError } from '../../errors.ts'
import { WrongUsage } from './command.ts'
import type { CommandIo } from './output.ts'

/** More than any password may have; longer input was not meant to be a password. */
const bytesMax = 4096

/**
 * Reads a new password: at a terminal by two prompts without echo, otherwise all of standard input without a
 * trailing newline. Arguments and environment variables are no source: other users can see them.
 */
export async function askPassword(io: CommandIo, whose: string): Promise<string> {
  for (;;) {
    const first = await readPassword(io, `New password for ${whose}: `)
    if (!io.stdin.isTTY) return first
    if ((await askHidden(io, 'Repeat the password: ')) === first) return first
    io.stderr.write('The passwords differ. Try again.\n')
  }
}

/** Reads a password once: at a terminal without echo, otherwise all of standard input. */
export async function readPassword(io: CommandIo, prompt: string): Promise<string> {
  if (io.stdin.isTTY) return await askHidden(io, prompt)
  const password = (await readAll(io, bytesMax, 'a password')).replace(/\r?\n$/, '')
  if (password === '') throw new WrongUsage('Standard input is empty. Pipe the password into the command.')
  return password
}

/**
 * All of standard input, without the byte order mark that some shells put before it. `max` bounds its bytes, `what`
 * names it in the refusal. Other encodings are refused: a password in one would be stored as another text.
 */
export async function readAll({ stdin }: CommandIo, max: number, what: string): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of stdin) {
    const bytes = Buffer.from(part)
    length += bytes.length
    if (length > max) throw new WrongUsage(`Standard input is too long for ${what}.`)
    parts.push(bytes)
  }
  const all = Buffer.concat(parts)
  if (!isUtf8(all)) throw new WrongUsage('Standard input is not UTF-8.')
  return new TextDecoder().decode(all)
}

/** Asks at the terminal without echo, again while more than one line comes at once: none of them is known to be meant. */
async function askHidden(io: CommandIo, prompt: string): Promise<string> {
  for (;;) {
    const [line = '', ...more] = await linesTyped(io, prompt)
    if (more.length === 0) return line
    io.stderr.write('More than one line was pasted; none was used. Type or paste one line.\n')
  }
}

/**
 * Reads one line from the terminal, and what comes with it: a paste reaches readline in one piece. Readline handles
 * editing; its echo is discarded.
 */
function linesTyped({ stdin, stderr }: CommandIo, prompt: string): Promise<string[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true })
  stderr.write(prompt)
  return new Promise<string[]>((resolve, reject) => {
    const interrupted = new StartError('interrupted', '\nInterrupted; nothing was changed.', 1)
    const typed: string[] = []
    lines.once('SIGINT', () => reject(interrupted))
    lines.once('close', () => reject(interrupted))
    lines.on('line', (line) => typed.push(line))
    // Readline emits all lines of a piece before this runs, and holds what follows the last.
    lines.once('line', () =>
      queueMicrotask(() => resolve(lines.line === '' ? typed : [...typed, lines.line])),
    )
  }).finally(() => {
    lines.close()
    stderr.write('\n')
  })
}
