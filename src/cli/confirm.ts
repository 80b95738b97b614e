import { createInterface } from 'node:readline'
import { StartError } from '../errors.ts'
import type { CommandIo } from './output.ts'

/** Asks for confirmation at a terminal; scripts are not asked. */
export async function confirmed({ stdin, stderr }: CommandIo, warning: string): Promise<void> {
  if (!stdin.isTTY) return
  stderr.write(`${warning} Go on? (yes/no) `)
  const lines = createInterface({ input: stdin })
  const [answer = ''] = await new Promise<string[]>((resolve) => {
    lines.once('line', (line) => resolve([line]))
    lines.once('close', () => resolve([]))
  })
  lines.close()
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new StartError('not_confirmed', 'Nothing was changed. (--yes answers without being asked.)', 1)
}
