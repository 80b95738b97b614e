import { execFile, spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { constants, getPriority } from 'node:os'
import { promisify } from 'node:util'
import { hash, verify } from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { runHash } from './hash-threads.ts'

const cheap = { memoryCost: 64, timeCost: 1, parallelism: 1 }
const dear = { memoryCost: 65_536, timeCost: 4, parallelism: 1 }

/** Arguments of `nice`. From 19 on, any other priority is a higher one, for which the process lacks the right. */
const unprivileged = [
  ...['-n', '19'],
  ...(process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-sys_nice'] : []),
]

describe('hashing threads', () => {
  test('compute what the library computes', async () => {
    const stored = await runHash('hash', 'a password', cheap)
    expect(await verify(stored, 'a password')).toBe(true)
    expect(await runHash('verify', await hash('other', cheap), 'other')).toBe(true)
    expect(await runHash('verify', stored, 'other')).toBe(false)
  })

  test('reject with what the library throws, and keep working', async () => {
    await expect(runHash('verify', 'no hash', 'x')).rejects.toThrow()
    expect(await runHash('verify', await hash('x', cheap), 'x')).toBe(true)
  })

  test('answer each of many concurrent jobs to its caller', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `password ${index}`)
    const stored = await Promise.all(names.map((name) => runHash('hash', name, cheap)))
    for (const [index, name] of names.entries()) expect(await verify(String(stored[index]), name)).toBe(true)
  })

  test('leave the event loop free', async () => {
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    await runHash('hash', 'x', dear)
    clearInterval(timer)
    expect(turns).toBeGreaterThan(3)
  })

  test.runIf(process.platform === 'linux')('run behind everything else', async () => {
    await runHash('hash', 'x', cheap)
    const below = readdirSync('/proc/self/task').filter(
      (thread) => getPriority(Number(thread)) === constants.priority.PRIORITY_BELOW_NORMAL,
    )
    expect(below.length).toBeGreaterThan(0)
    expect(getPriority()).toBeLessThan(constants.priority.PRIORITY_BELOW_NORMAL)
  })

  test.runIf(spawnSync('nice', [...unprivileged, 'true']).status === 0)(
    'say once that they may not lower their priority, and compute all the same',
    async () => {
      const program = `
      const { onPriorityKept, runHash } = await import(${JSON.stringify(new URL('./hash-threads.ts', import.meta.url))})
      onPriorityKept(console.log)
      const hash = () => runHash('hash', 'x', ${JSON.stringify(cheap)})
      await Promise.all([hash(), hash()])`
      const command = [...unprivileged, process.execPath, '--input-type=module', '-e', program]
      expect((await promisify(execFile)('nice', command)).stdout).toMatch(/^[^\n]*setpriority[^\n]*\n$/)
    },
  )
})
