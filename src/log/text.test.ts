import { expect, it } from 'vitest'
import { createLog } from './log.ts'
import { textLines } from './text.ts'

function logged(act: (log: ReturnType<typeof createLog>) => void): string {
  let text = ''
  act(createLog('debug', textLines({ write: (part) => (text += part) })))
  return text
}

it('a line is time, level, message and fields', () => {
  const line = logged((log) => log.info({ method: 'GET', status: 200, ok: true, ip: null }, 'request'))
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z INFO {2}request method=GET status=200 ok=true ip=null\n$/)
})

it('text with spaces or quotes is quoted', () => {
  expect(logged((log) => log.warn({ a: 'x y', b: 'c="d"', e: '' }, 'm'))).toMatch(
    / a="x y" b="c=\\"d\\"" e=""\n$/,
  )
})

it('no value starts a new line or controls the terminal', () => {
  const bad = 'x\nfake \u001b[31m\u009b2J\u2028\u202e'
  const text = logged((log) => log.error({ path: bad, err: new Error(bad) }, bad))
  expect(
    text
      .split('\n')
      .slice(1, -1)
      .every((line) => line.startsWith('    ')),
  ).toBe(true)
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028]/u)
})

it('an error shows its stack', () => {
  expect(logged((log) => log.error({ err: new TypeError('broken') }, 'failed'))).toMatch(
    / ERROR failed\n {4}TypeError: broken\n {8}at /,
  )
})
