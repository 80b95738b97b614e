import { existsSync } from 'node:fs'
import { rm, unlink } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { type Database, sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import { createPrivateFile, readPrivateFile } from '../files/private-file.ts'
import type { Log } from '../log/log.ts'
import { equalText, randomToken, sha256Hex } from './secrets.ts'

/** The one-time token that makes the first account, and the lock that it opens once (contract 2, section 9). */
export type Bootstrap = {
  readonly mode: Config['bootstrap']
  /** Where the token file is or would be. */
  readonly path: string
  /** True once the one bootstrap has happened; remembered, since it never turns back. */
  isDone(): Promise<boolean>
  /** False once used up; undefined where it is switched off, or its token file cannot be used. */
  availability(): Promise<boolean | undefined>
  /** `missing`: no usable file, logged. */
  compare(token: string): Promise<'equal' | 'different' | 'missing'>
  /** After the commit: the file goes; where it cannot, readiness warns until it is gone. */
  discard(): Promise<void>
  warnings(): string[]
  /** Puts a fresh token in place of any other; while nobody may bootstrap, so hold the lock row. */
  renew(): Promise<void>
  /** At start: makes the token file on an empty service, or removes one that is left over. */
  prepare(): Promise<void>
}

export function createBootstrap(config: Config, db: Database, log: Log): Bootstrap {
  const { bootstrap: mode, bootstrap_token_path: path } = config
  let done = false
  let leftOver = false

  const isDone = async (): Promise<boolean> => {
    if (done) return true
    const row = await db.first<{ bootstrapped: boolean }>(
      sql`select bootstrapped from bootstrap_lock where id = 1`,
    )
    done = row?.bootstrapped === true
    return done
  }
  const read = async (): Promise<string | undefined> => {
    const file = await readPrivateFile(path)
    if ('content' in file) return file.content
    log.warn({ path, problem: file.problem }, 'the bootstrap token file cannot be used')
    return undefined
  }
  const discard = async (): Promise<void> => {
    done = true
    leftOver = await unlink(path).then(
      () => false,
      () => existsSync(path),
    )
    if (leftOver) log.error({ path }, 'the used bootstrap token file could not be deleted; delete it by hand')
  }

  return {
    mode,
    path,
    isDone,
    availability: async () => {
      if (mode !== 'live') return undefined
      if (await isDone()) return false
      return (await read()) === undefined ? undefined : true
    },
    compare: async (token) => {
      const kept = await read()
      if (kept === undefined) return 'missing'
      return equalText(sha256Hex(token), sha256Hex(kept)) ? 'equal' : 'different'
    },
    discard,
    renew: async () => {
      await rm(path, { force: true })
      if (!(await createPrivateFile(path, `${randomToken()}\n`)))
        throw new Error(`${path} was made by another process at the same moment; try again.`)
    },
    // Looked at anew: the warning ends when the operator has deleted the file.
    warnings: () => (leftOver && existsSync(path) ? ['bootstrap_token_file_left'] : []),
    prepare: async () => {
      if (mode !== 'live') return
      if (await isDone()) return await discard()
      if (await db.first(sql`select 1 from account limit 1`)) return
      const found = await readPrivateFile(path)
      if ('problem' in found && found.remedy) throw planted(path, found.problem, found.remedy)
      try {
        await createPrivateFile(path, `${randomToken()}\n`)
      } catch (error) {
        if (error instanceof StartError) throw error
        log.error(
          { err: error, path },
          'the bootstrap token file could not be made; make its directory writable and restart',
        )
      }
    },
  }
}

/** Whoever made the file knows the token, and would make himself the keeper. */
const planted = (path: string, problem: string, remedy: string): StartError =>
  new StartError(
    'configuration',
    `The bootstrap token at ${path} cannot be used: the file ${problem}. ${remedy} Where you did not make it, delete it: \`cellkeep bootstrap-token reset\` makes another.`,
    78,
  )
