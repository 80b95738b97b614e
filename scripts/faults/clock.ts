import assert from 'node:assert/strict'
import { chmodSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { NotRun, need } from '../packaging/check.ts'
import type { Fault } from './fault.ts'
import { startLoad } from './load.ts'

const day = 86_400

export const clock: Fault = {
  name: 'The clock jumps',
  how: 'the clock of server and PostgreSQL (libfaketime) is a day ahead for 5 s, then a day behind for 5 s, then right again',
  run: async (cwd) => {
    need('faketime')
    const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')
    if (library === undefined) throw new NotRun('faketime is not that of Debian')
    const now = join(cwd, 'clock')
    const jump = (offset: number): void => writeFileSync(now, `${offset < 0 ? '' : '+'}${offset}\n`)
    jump(0)
    chmodSync(now, 0o644)
    const faked = [
      `export LD_PRELOAD=${library} FAKETIME_TIMESTAMP_FILE='${now}' FAKETIME_CACHE_DURATION=1`,
      // The monotonic clock stays real: it measures durations, and nobody sets it.
      'export FAKETIME_DONT_FAKE_MONOTONIC=1 DONT_FAKE_MONOTONIC=1',
    ].join('\n')
    const bin = await programs(cwd, faked)
    const load = await startLoad(cwd, { CELLKEEP_POSTGRES_BIN: bin }, `${faked}\nexec "$@"`)
    await load.writes(100)
    load.strike()
    for (const offset of [day, -day, 0]) {
      jump(offset)
      await delay(5000)
      const { cell } = await load.server.client.cell_create({ data: {} })
      const off = Date.parse(cell.created_at) - Date.now() - offset * 1000
      assert.ok(Math.abs(off) < 60_000, `the database's clock did not jump: ${cell.created_at}`)
    }
    await load.writes(100)
    const report = await load.end()
    await load.server.end('SIGTERM')
    return report
  },
  note: 'The clock of the database decides when sessions and tokens end. If it is ahead by more than their remaining time, they end, and the next cleanup deletes them for good.',
}

/** PostgreSQL under the same clock: the server gives its programs an environment of their own. */
async function programs(cwd: string, faked: string): Promise<string> {
  const user = await databaseUser('')
  const { postgres, initdb, env } = await findBinaries({ libDir: join(cwd, 'lib'), user })
  const bin = join(cwd, 'bin')
  mkdirSync(bin)
  const own = Object.entries(env).map(([name, value]) => `export ${name}='${value}'`)
  for (const [name, program] of Object.entries({ postgres, initdb })) {
    writeFileSync(join(bin, name), ['#!/bin/sh', ...own, faked, `exec '${program}' "$@"`].join('\n'))
    chmodSync(join(bin, name), 0o755)
  }
  return bin
}
