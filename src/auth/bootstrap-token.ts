import { existsSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { type Database, sql } from '../db/db.ts'
import { StartError } from '../errors.ts'
import { createPrivateFile, readPrivateFile, replacePrivateFile } from '../files/private-file.ts'
import type { Log } from '../log/log.ts'
import { equalText, randomToken, sha256Hex } from './secrets.ts'

/** The one-time token that makes the first account, and the lock row that lets it be used once. */
export type Bootstrap = {
  readonly mode: Config['bootstrap']
  /** The path of the token file, whether it exists or not. */
  readonly path: string
  /** True once the bootstrap has happened; cached, since that never changes back. Then the file is removed. */
  isDone(): Promise<boolean>
  /** False once used; undefined if bootstrap is switched off or the token file is unusable. */
  availability(): Promise<boolean | undefined>
  /** `missing`: there is no usable file; the reason is logged. */
  compare(token: string): Promise<'equal' | 'different' | 'missing'>
  /** Deletes the file after the commit; if that fails, readiness warns until it is gone. */
  discard(): Promise<void>
  warnings(): string[]
  /**
   * Replaces the token with a new one; if that fails, the old one stays. Call it while holding the lock row, so that
   * nobody bootstraps meanwhile.
   */
  renew(): Promise<void>
  /** At start: makes the token file if there are no accounts, removes it if bootstrap has happened. */
  prepare(): Promise<void>
}

export function createBootstrap(config: Config, db: Database, log: Log): Bootstrap {
  const { bootstrap: mode, bootstrap_token_path: path } = config
  let done = false
  let leftOver = false

  const discard = async (): Promise<void> => {
    done = true
    leftOver = await unlink(path).then(
      () => false,
      () => existsSync(path),
    )
    if (leftOver)
      log.error(
        { event: 'bootstrap_token', path },
        'the used bootstrap token file cannot be deleted; delete it by hand',
      )
  }
  const isDone = async (): Promise<boolean> => {
    if (done) return true
    const row = await db.first<{ bootstrapped: boolean }>(
      sql`select bootstrapped from bootstrap_lock where id = 1`,
    )
    done = row?.bootstrapped === true
    // Another node or a command has made the first account, so the token of this node is useless.
    if (done && mode === 'live') await discard()
    return done
  }
  const read = async (): Promise<string | undefined> => {
    const file = await readPrivateFile(path)
    if ('content' in file) return file.content
    log.warn(
      { event: 'bootstrap_token', path, problem: file.problem },
      'the bootstrap token file cannot be used',
    )
    return undefined
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
    renew: () => replacePrivateFile(path, `${randomToken()}\n`),
    // Checks again, so that the warning ends when the operator deletes the file.
    warnings: () => (leftOver && existsSync(path) ? ['bootstrap_token_file_left'] : []),
    prepare: async () => {
      if (mode !== 'live') return
      if (await isDone()) return
      if (await db.first(sql`select 1 from account limit 1`)) return
      const found = await readPrivateFile(path)
      if ('problem' in found && found.remedy) throw planted(path, found.problem, found.remedy)
      try {
        await createPrivateFile(path, `${randomToken()}\n`)
      } catch (error) {
        if (error instanceof StartError) throw error
        log.error(
          { event: 'bootstrap_token', err: error, path },
          'the bootstrap token file cannot be created; make its directory writable and restart',
        )
      }
    },
  }
}

/** Refuses a token file that others could have written: its author knows the token and could become the keeper. */
const planted = (path: string, problem: string, remedy: string): StartError =>
  new StartError(
    'configuration',
    `The bootstrap token at ${path} cannot be used: the file ${problem}. ${remedy} If you did not create the file, delete it; \`cellkeep bootstrap-token reset\` writes a new one.`,
    78,
  )
