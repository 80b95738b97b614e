import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { StartError } from '../errors.ts'
import { WrongUsage } from './command.ts'
import type { CommandIo } from './io.ts'

/** More than any password may have; whatever sends more was not meant to be one. */
const bytesMax = 4096

/**
 * A new password: asked for twice on a terminal, which shows nothing of it; else all of standard input, up to
 * a newline at its end. It comes from nowhere else: arguments and variables are for everybody to see.
 */
export async function askPassword(io: CommandIo, whose: string): Promise<string> {
  if (!io.stdin.isTTY) {
    const password = (await readAll(io.stdin)).replace(/\r?\n$/, '')
    if (password === '')
      throw new WrongUsage('The password is read from standard input, and nothing came: pipe it in.')
    return password
  }
  for (;;) {
    const first = await askHidden(io, `New password for ${whose}: `)
    if ((await askHidden(io, 'The same again: ')) === first) return first
    io.stderr.write('They differ; once more.\n')
  }
}

async function readAll(stdin: NodeJS.ReadableStream): Promise<string> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of stdin) {
    const bytes = Buffer.from(part)
    length += bytes.length
    if (length > bytesMax) throw new WrongUsage('What came on standard input is too long for a password.')
    parts.push(bytes)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** One line from the terminal. Readline edits it, and writes the echo into the void. */
function askHidden({ stdin, stderr }: CommandIo, prompt: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true })
  stderr.write(prompt)
  return new Promise((resolve, reject) => {
    const interrupted = new StartError('interrupted', '\nInterrupted; nothing was changed.', 1)
    lines.once('SIGINT', () => reject(interrupted))
    lines.once('close', () => reject(interrupted))
    lines.once('line', resolve)
  }).finally(() => {
    lines.close()
    stderr.write('\n')
  }) as Promise<string>
}
