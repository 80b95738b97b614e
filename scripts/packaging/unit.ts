import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Check, NotRun, need, packaging, run } from './check.ts'

/** A server needs the network and a compiler in its process; everything else is closed. */
const exposureMax = 1.5

/** cellkeep.service: what systemd can check without running it. */
export const unit: Check = async function* () {
  need('systemd-analyze', 'systemd')
  const dir = await mkdtemp(join(tmpdir(), 'ck-unit-'))
  try {
    const file = join(dir, 'cellkeep.service')
    const text = await readFile(packaging('cellkeep.service'), 'utf8')
    await writeFile(file, text.replace('/usr/bin/node ', `${process.execPath} `))
    const { stdout, stderr } = await run('systemd-analyze', ['verify', file])
    assert.equal(stdout + stderr, '')
    yield 'verify is silent'
    const { stdout: table } = await run('systemd-analyze', ['security', '--offline=yes', '--no-pager', file])
    const exposure = Number(/Overall exposure level for cellkeep.service: ([\d.]+)/.exec(table)?.[1])
    assert.ok(exposure <= exposureMax, `exposure ${exposure}, not ${exposureMax} or less`)
    yield `exposure ${exposure}`
  } finally {
    await rm(dir, { recursive: true })
  }
  const { stdout: init } = await run('cat', ['/proc/1/comm'])
  if (init.trim() !== 'systemd') throw new NotRun('under its filters: systemd is not the first process here')
}
