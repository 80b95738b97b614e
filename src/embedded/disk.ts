import { statfs } from 'node:fs/promises'
import { refusal } from '../errors.ts'
import type { Log } from '../log/log.ts'

/** The disk that the embedded database writes to. */
export type Disk = {
  /** Refuses to store content while little room is left. What is left serves sign-ins, revocations and the database itself. */
  admit(): void
  close(): void
}

/** Of a database that runs elsewhere nothing is known. */
export const unknownDisk: Disk = { admit: () => {}, close: () => {} }

/** Much faster than anybody fills the reserve. */
const intervalMs = 2_000

/** How much room is left on the disk of a directory, and what that means. */
export type Space = { free: number; state: 'ok' | 'low' | 'full'; reserve: number; low: number }

/**
 * Full: less than the reserve is free, which on a small disk is a twentieth of it; low: less than four times as
 * much. A state is left with a quarter more than it begins with, so that nothing flutters.
 */
export async function spaceOf(
  dir: string,
  reserveMax: number,
  before: Space['state'] = 'ok',
): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(dir)
  const free = bavail * bsize
  const reserve = Math.min(reserveMax, Math.floor((blocks * bsize) / 20))
  const low = 4 * reserve
  const isBelow = (level: number, wasBelow: boolean): boolean => free < (wasBelow ? 1.25 * level : level)
  const state = isBelow(reserve, before === 'full') ? 'full' : isBelow(low, before !== 'ok') ? 'low' : 'ok'
  return { free, state, reserve, low }
}

/** Looks every two seconds, and says once when the room gets scarce, and when there is enough again. */
export async function watchDisk(dir: string, reserveMax: number, log: Log): Promise<Disk> {
  let state: Space['state'] = 'ok'
  const look = async (): Promise<void> => {
    const before = state
    const space = await spaceOf(dir, reserveMax, before)
    state = space.state
    if (state === before) return
    const fields = { data_dir: dir, free_bytes: space.free, reserve_bytes: space.reserve }
    if (state === 'full')
      log.error(fields, 'the disk of the data dir is full: content is refused until there is room')
    else if (state === 'low') log.warn(fields, 'the disk of the data dir is nearly full')
    else log.info(fields, 'the disk of the data dir has room again')
  }
  const again = (): Promise<void> =>
    look().catch((error) => log.warn({ err: error, data_dir: dir }, 'the room on the disk cannot be told'))
  await again()
  const timer = setInterval(again, intervalMs)
  timer.unref()
  return {
    admit: () => {
      if (state === 'full') throw refusal('storage_full')
    },
    close: () => clearInterval(timer),
  }
}
