import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { NotRun } from '../packaging/check.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

export const diskFull: Fault = {
  name: 'The disk is full',
  how: 'the data directory is a file system of 256 MiB (tmpfs), which a foreign file fills for 10 s',
  run: async (cwd) => {
    const disk = join(cwd, '.cellkeep')
    mkdirSync(disk)
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m,mode=0711', 'tmpfs', disk], { stdio: 'pipe' })
    } catch {
      throw new NotRun('only root may mount a file system of its own')
    }
    try {
      chmodSync(disk, 0o711)
      const load = await startLoad(cwd)
      await load.writes(100)
      const filler = join(disk, 'filler')
      load.strike()
      fill(filler)
      await load.refusal()
      await delay(10_000)
      rmSync(filler)
      await load.writes(100)
      const report = await load.end()
      await load.server.end('SIGTERM')
      return report
    } finally {
      execFileSync('umount', ['--lazy', disk])
    }
  },
}

/** To the last byte. */
function fill(path: string): void {
  const file = openSync(path, 'w')
  for (let part = Buffer.alloc(1024 * 1024); part.length > 0; ) {
    try {
      writeSync(file, part)
    } catch {
      part = part.subarray(0, part.length >> 1)
    }
  }
  closeSync(file)
}
