import { join } from 'node:path'
import { Broken, cookieKeys, read } from '../config/kinds.ts'
import { StartError } from '../errors.ts'
import { createPrivateFile, readPrivateFile } from '../files/private-file.ts'
import { randomToken } from './secrets.ts'

/**
 * The cookie keys in `<data dir>/cookie_keys`, used with an embedded database. The file is made once with one
 * random key, then only read; it takes the same list as `CELLKEEP_COOKIE_KEYS`. A root process must make the
 * data dir first: made here it would be 0700, which the database's user cannot enter.
 * Rejects with a configuration StartError (78) if the file is unusable; never overwrites it.
 */
export async function keptCookieKeys(dataDir: string): Promise<readonly string[]> {
  const path = join(dataDir, 'cookie_keys')
  let file = await readPrivateFile(path)
  if ('missing' in file) {
    await createPrivateFile(path, `${randomToken()}\n`).catch((error: NodeJS.ErrnoException) => {
      if (error instanceof StartError) throw error
      throw new StartError(
        'configuration',
        `${path} cannot be made (${error.code}). Let this user write to the data dir, or set CELLKEEP_DATA_DIR.`,
        78,
      )
    })
    file = await readPrivateFile(path)
  }
  if ('problem' in file) throw unusable(path, file.problem, file.remedy)
  const { rule, text } = cookieKeys()
  const ring = read(rule, text, file.content)
  if (ring instanceof Broken) throw unusable(path, ring.rule)
  return ring
}

const unusable = (path: string, problem: string, remedy = 'Repair it.'): StartError =>
  new StartError(
    'configuration',
    `The cookie keys at ${path} cannot be used: the file ${problem}. ${remedy} If you move it away, the next start ` +
      'makes a new key, which ends every browser session.',
    78,
  )
