import { join } from 'node:path'
import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { StartError } from '../errors.ts'
import { readPrivateFile } from '../files/private-file.ts'
import { isPlainObject } from '../wire/input.ts'
import { Uuid } from '../wire/types.ts'
import { mailDirectory } from './file.ts'

export const showMessage = operation({
  doc: 'Show a message that CELLKEEP_MAIL=file wrote, with its link.',
  input: z.strictObject({ message_id: Uuid }),
  async handler({ message_id }, { app }) {
    const path = join(mailDirectory(app.config), `${message_id}.json`)
    const file = await readPrivateFile(path, 65_536)
    const refused = (problem: string, next = '') =>
      new StartError('no_message', `${path} ${problem}.${next}`, 1)
    const others = ' `cellkeep mail list` shows the messages of the last days.'
    if ('problem' in file) throw refused(file.problem, file.missing && others)
    try {
      const message: unknown = JSON.parse(file.content)
      if (isPlainObject(message)) return message as Record<string, string>
    } catch {}
    throw refused('is not a JSON object', others)
  },
  command: {
    name: 'mail show',
    args: { message_id: 'MESSAGE' },
    phrase: ({ to, subject, text }) => [{ to: to ?? '', subject: subject ?? '' }, '', text ?? ''],
  },
})
