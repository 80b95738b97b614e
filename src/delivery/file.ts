import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { replacePrivateFile } from '../files/private-file.ts'
import type { Deliver } from '../registry/messages.ts'
import type { Texts } from './templates.ts'

export const mailDirectory = ({ data_dir }: Pick<Config, 'data_dir'>): string => join(data_dir, 'mail')

const keptMs = 7 * 86_400_000

/** Writes a JSON file per message, for development: no mail server is needed to see and open a link. */
export const fileTransport =
  (config: Config, texts: Texts): Deliver =>
  async (message) => {
    const directory = mailDirectory(config)
    const content = { ...message, ...texts(message) }
    await replacePrivateFile(join(directory, `${message.id}.json`), `${JSON.stringify(content, null, 2)}\n`)
    await removeOld(directory)
  }

async function removeOld(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.endsWith('.json')) continue
    const path = join(directory, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
    if (mtimeMs < Date.now() - keptMs) await rm(path, { force: true })
  }
}
