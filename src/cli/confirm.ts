import { createInterface } from 'node:readline'
import { StartError } from '../errors.ts'
import type { CommandIo } from './output.ts'

/** Asks for confirmation at a terminal; scripts are not asked. */
export async function confirmed(io: CommandIo, warning: string): Promise<void> {
  if (!(await agreed(io, `${warning} Go on?`)))
    throw new StartError('not_confirmed', 'Nothing was changed. (--yes answers without being asked.)', 1)
}

/** The answer to a question at a terminal; scripts agree. */
export async function agreed({ stdin, stderr }: CommandIo, question: string): Promise<boolean> {
  if (!stdin.isTTY) return true
  stderr.write(`${question} (yes/no) `)
  const lines = createInterface({ input: stdin })
  const [answer = ''] = await new Promise<string[]>((resolve) => {
    lines.once('line', (line) => resolve([line]))
    lines.once('close', () => resolve([]))
  })
  lines.close()
  return /^y(es)?$/i.test(answer.trim())
}
