import { statfs } from 'node:fs/promises'
import { refusal } from '../errors.ts'
import type { Log } from '../log/log.ts'

/** The disk that the embedded database writes to. */
export type Disk = {
  /** Refuses content while space is short: the rest is for sign-ins, revocations and the database itself. */
  admit(): void
  close(): void
}

/** For a database that runs elsewhere: its disk cannot be observed. */
export const unknownDisk: Disk = { admit: () => {}, close: () => {} }

/** Short enough that the reserve cannot be filled in between. */
const intervalMs = 2_000

/** The free space on the disk of a directory, and how to judge it. */
type Space = { free: number; state: 'ok' | 'low' | 'full'; reserve: number; low: number }

/**
 * Full: less than the reserve is free (at most a twentieth of the disk). Low: less than four times the reserve.
 * A state ends only at 125% of the level at which it begins, so that it does not flap.
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

/** Checks the disk every two seconds and logs each change of state. */
export async function watchDisk(dir: string, reserveMax: number, log: Log): Promise<Disk> {
  let state: Space['state'] = 'ok'
  const look = async (): Promise<void> => {
    const before = state
    const space = await spaceOf(dir, reserveMax, before)
    state = space.state
    if (state === before) return
    const fields = { data_dir: dir, free_bytes: space.free, reserve_bytes: space.reserve }
    if (state === 'full')
      log.error(
        { event: 'disk_full', ...fields },
        'the disk of the data dir is full; content is refused until there is space',
      )
    else if (state === 'low')
      log.warn({ event: 'disk_low', ...fields }, 'the disk of the data dir is nearly full')
    else log.info(fields, 'the disk of the data dir has space again')
  }
  const again = (): Promise<void> =>
    look().catch((err) =>
      log.warn({ event: 'disk_low', err, data_dir: dir }, 'the free space on the disk cannot be read'),
    )
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
