import { join } from 'node:path'
import { z } from 'zod'
import { operation } from '../core/operation.ts'
import { StartError } from '../errors.ts'
import { readPrivateFile } from '../files/private-file.ts'
import { Uuid } from '../wire/types.ts'
import { mailDirectory } from './file.ts'

export const showMessage = operation({
  doc: 'Show a message that CELLKEEP_MAIL=file wrote, with its link.',
  input: z.strictObject({ message_id: Uuid }),
  async handler({ message_id }, { app }) {
    const path = join(mailDirectory(app.config), `${message_id}.json`)
    const file = await readPrivateFile(path, 65_536)
    if ('problem' in file) {
      const hint = file.missing ? ' `cellkeep mail list` shows the messages of the last days.' : ''
      throw new StartError('no_message', `${path} ${file.problem}.${hint}`, 1)
    }
    return JSON.parse(file.content) as Record<string, string>
  },
  command: {
    name: 'mail show',
    args: { message_id: 'MESSAGE' },
    phrase: ({ to, subject, text }) => [{ to: to ?? '', subject: subject ?? '' }, '', text ?? ''],
  },
})
