import type { Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FreshDatabase, migratedDatabase } from '../../test/fresh-database.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { type Database, openDatabase, sql } from './db.ts'

const mebibyte = 1_048_576

/** One connection to the database, with what it has sent but the test has not yet passed on. */
type Line = { near: Socket; kept: Buffer[]; passed: number; letter: string; isHeld: boolean }

let database: FreshDatabase
let db: Database
const lines: Line[] = []
let close: () => Promise<void>

/** Each result in these tests is full of one letter, which tells its connection. */
const lineOf = (letter: string): Line => lines.find((line) => line.letter === letter) as Line
/** The line is held when this much of a result has been passed on. */
let holds: Record<string, number> = {}

function pass(line: Line, chunk: Buffer): void {
  const letter = chunk.subarray(-100, -50).toString('latin1')
  if (/^([a-z])\1{49}$/.test(letter)) line.letter = letter[0] as string
  const room = (holds[line.letter] ?? Number.POSITIVE_INFINITY) - line.passed
  line.passed += chunk.length
  if (!line.isHeld) line.near.write(chunk.subarray(0, room))
  if (line.isHeld) line.kept.push(chunk)
  else if (chunk.length > room) line.kept.push(chunk.subarray(room))
  line.isHeld ||= chunk.length > room
}

function release(letter: string): void {
  const line = lineOf(letter)
  holds = {}
  line.isHeld = false
  line.near.write(Buffer.concat(line.kept.splice(0)))
}

beforeAll(async () => {
  database = await migratedDatabase()
  const proxy = await postgresProxy(database.connection, (near, far) => {
    const line: Line = { near, kept: [], passed: 0, letter: '', isHeld: false }
    lines.push(line)
    near.on('data', (chunk) => {
      line.passed = 0
      far.write(chunk)
    })
    far.on('data', (chunk: Buffer) => pass(line, chunk))
  })
  const { connection } = proxy
  db = openDatabase({ connection, poolMax: 3, statementTimeoutMs: 60_000, onError: () => {} })
  close = async () => {
    await db.close()
    await proxy.close()
    await database.drop()
  }
})
afterAll(() => close())

/** A result of this many rows of 1,000 letters. */
const result = (letter: string, rows: number) =>
  db.rows<{ text: string }>(
    sql`select repeat(${letter}::text, 1000) text from generate_series(1, ${rows}::int)`,
  )
const isWhole = (rows: { text: string }[], letter: string) =>
  rows.every(({ text }) => text === letter.repeat(1000))

it('a large result waits unread while another is arriving, and short ones do not', async () => {
  holds = { a: 5 * mebibyte }
  const first = result('a', 10_000)
  await expect.poll(() => lineOf('a')?.isHeld).toBe(true)
  let isDone = false
  const second = result('b', 30_000).finally(() => {
    isDone = true
  })
  await expect.poll(() => lineOf('b')?.near.writableLength).toBeGreaterThan(8 * mebibyte)
  for (let count = 0; count < 50; count++) expect(await result('c', 100)).toHaveLength(100)
  expect(isDone).toBe(false)
  expect(lineOf('b').near.writableLength).toBeGreaterThan(8 * mebibyte)
  release('a')
  expect(isWhole(await first, 'a')).toBe(true)
  expect(isWhole(await second, 'b')).toBe(true)
})

it('a result that ends in the moment when it would have to wait leaves its connection in use', async () => {
  holds = { d: 5 * mebibyte, e: 250_000 }
  const first = result('d', 10_000)
  await expect.poll(() => lineOf('d')?.isHeld).toBe(true)
  // The held part, 15 kB, crosses the size from which results wait.
  const short = result('e', 262)
  await expect
    .poll(() =>
      Buffer.concat(lineOf('e')?.kept ?? [])
        .subarray(-6, -5)
        .toString(),
    )
    .toBe('Z')
  release('e')
  expect(isWhole(await short, 'e')).toBe(true)
  // On every other connection.
  const others = await Promise.all([result('f', 10), result('g', 10)])
  expect(others.map((rows) => rows.length)).toEqual([10, 10])
  release('d')
  expect(isWhole(await first, 'd')).toBe(true)
})
