import { createInterface } from 'node:readline'
import { StartError } from '../../errors.ts'
import type { CommandIo } from './output.ts'

/** Asks for confirmation at a terminal; scripts are not asked. */
export async function confirmed(io: CommandIo, warning: string): Promise<void> {
  if (!(await agreed(io, `${warning} Go on?`)))
    throw new StartError('not_confirmed', 'Nothing was changed. To skip the question, add --yes.', 1)
}

/** The answer to a question at a terminal; scripts agree. */
export async function agreed({ stdin, stderr }: CommandIo, question: string): Promise<boolean> {
  if (!stdin.isTTY) return true
  stderr.write(`${question} (yes/no) `)
  return /^y(es)?$/i.test((await lineFrom(stdin))?.trim() ?? '')
}

/** The input up to the end of a line; undefined if the input ends before. */
export async function lineFrom(input: CommandIo['stdin']): Promise<string | undefined> {
  const lines = createInterface({ input })
  const line = await new Promise<string | undefined>((resolve) => {
    lines.once('line', resolve)
    lines.once('close', () => resolve(undefined))
  })
  lines.close()
  return line
}
