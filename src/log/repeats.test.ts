import { expect, it } from 'vitest'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { withoutRepeats } from './repeats.ts'

it('an error that cannot be read is written like any other', () => {
  const { log, lines } = capturedLog()
  const nameless = Object.assign(new Error('broken'), { code: Object.create(null) })
  const unreadable = Object.defineProperty(new Error('broken'), 'code', {
    get: () => {
      throw new Error('unreadable')
    },
  })
  for (const err of [nameless, unreadable])
    withoutRepeats(log).error({ event: 'request_failed', err }, 'a request failed unexpectedly')
  const err = expect.objectContaining({ stack: expect.stringContaining('Error: broken') })
  expect(lines()).toEqual(Array(2).fill(expect.objectContaining({ level: 'error', err })))
})
