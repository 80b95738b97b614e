import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { Output } from './output.ts'

let count = 0
const dir = await mkdtemp(join(tmpdir(), 'ck-log-'))
afterAll(() => rm(dir, { recursive: true }))

const numbered = (number: number) => `${number} `.padEnd(299, 'x')

function pipe(): { reader: number; writer: number } {
  const path = join(dir, `pipe${count++}`)
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return { reader, writer: openSync(path, constants.O_WRONLY | constants.O_NONBLOCK) }
}

it('every line that is held reaches a late reader once and in order, then how many are missing', async () => {
  const { reader, writer } = pipe()
  const out = new Output(writer, (dropped) => out.write(`missing ${dropped}\n`))
  const all = 20_000
  for (let number = 0; number < all; number++) {
    out.write(`${numbered(number)}\n`)
    // Writing begins while lines still arrive.
    if (number % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  expect(out.dropped()).toBeGreaterThan(0)
  const lines: string[] = []
  for await (const line of createInterface({ input: new Socket({ fd: reader }) })) {
    lines.push(line)
    if (line.startsWith('missing')) break
  }
  const kept = lines.slice(0, -1)
  expect(kept).toEqual(kept.map((_, number) => numbered(number)))
  expect(lines.at(-1)).toBe(`missing ${all - kept.length}`)
  expect(out.dropped()).toBe(0)
  closeSync(writer)
})

it('lines are in a file after a flush, or without one after a moment', async () => {
  const path = join(dir, 'file')
  const file = openSync(path, 'a')
  onTestFinished(() => closeSync(file))
  const out = new Output(file)
  out.write('one\n')
  await out.flush(60_000)
  expect(await readFile(path, 'utf8')).toBe('one\n')
  out.write('two\n')
  await expect.poll(() => readFile(path, 'utf8')).toBe('one\ntwo\n')
  out.write('three\n')
  out.flushSync()
  expect(await readFile(path, 'utf8')).toBe('one\ntwo\nthree\n')
})

it.each([
  // Only Linux has `/dev/full`.
  ...(existsSync('/dev/full') ? [['a full disk', () => openSync('/dev/full', 'w')] as const] : []),
  ['a pipe that nobody reads', () => full()] as const,
])('%s holds up neither kind of flush', async (_, open) => {
  const fd = open()
  onTestFinished(() => closeSync(fd))
  const out = new Output(fd)
  out.write('one\n')
  const before = performance.now()
  await out.flush(100)
  out.flushSync()
  expect(performance.now() - before).toBeLessThan(10_000)
})

it('a line that waits takes the memory of its text, not of the parts that it was put together from', () => {
  setFlagsFromString('--expose-gc')
  const memory = () => {
    runInNewContext('gc')()
    return process.memoryUsage().heapUsed
  }
  const fd = full()
  onTestFinished(() => closeSync(fd))
  const out = new Output(fd)
  const before = memory()
  for (let number = 0; number < 10_000; number++) {
    let line = `${number} `
    for (let part = 0; part < 60; part++) line += `${part % 10}-xxx`
    out.write(`${line}\n`)
  }
  expect(memory() - before).toBeLessThan(8_000_000)
  expect(out.dropped()).toBe(0)
})

function full(): number {
  const { reader, writer } = pipe()
  onTestFinished(() => closeSync(reader))
  const out = new Output(writer)
  out.write('x'.repeat(1_000_000))
  out.flushSync()
  return writer
}
