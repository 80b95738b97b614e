import { join } from 'node:path'
import { Broken, keyList, read } from '../config/kinds.ts'
import { StartError } from '../errors.ts'
import { createPrivateFile, readPrivateFile } from '../files/private-file.ts'
import { randomToken } from './secrets.ts'

/** The key rings that are kept in files, each with what a new key would cost. */
const rings = {
  cookie_keys: { name: 'cookie keys', loss: 'ends every browser session' },
  secret_keys: { name: 'secret keys', loss: 'cannot decrypt what is stored, such as TOTP secrets' },
} as const
type KeptRing = keyof typeof rings

/**
 * The keys in `<data dir>/cookie_keys` or `secret_keys`, used with an embedded database. The file is made once with
 * one random key, then only read; it takes the same list as the variable of its name. A root process must make the
 * data dir first: made here it would be 0700, which the database's user cannot enter.
 * Rejects with a configuration StartError (78) if the file is unusable; never overwrites it.
 */
export async function keptKeys(dataDir: string, ring: KeptRing): Promise<readonly string[]> {
  const path = join(dataDir, ring)
  let file = await readPrivateFile(path)
  if ('missing' in file) {
    await createPrivateFile(path, `${randomToken()}\n`).catch((error: NodeJS.ErrnoException) => {
      if (error instanceof StartError) throw error
      throw new StartError(
        'configuration',
        `${path} cannot be created (${error.code}). Let this user write to the data dir, or set CELLKEEP_DATA_DIR.`,
        78,
      )
    })
    file = await readPrivateFile(path)
  }
  if ('problem' in file) throw unusable(ring, path, file.problem, file.remedy)
  const { rule, text } = keyList()
  const keys = read(rule, text, file.content)
  if (keys instanceof Broken) throw unusable(ring, path, keys.rule)
  return keys
}

const unusable = (ring: KeptRing, path: string, problem: string, remedy = 'Repair it.'): StartError =>
  new StartError(
    'configuration',
    `The ${rings[ring].name} at ${path} cannot be used: the file ${problem}. ${remedy} If you move it away, the next ` +
      `start creates a new key, which ${rings[ring].loss}.`,
    78,
  )
