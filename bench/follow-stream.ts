import { parseArgs } from 'node:util'
import { testService } from '../src/testing/index.ts'
import { type Followed, follow } from '../test/helpers/followers.ts'
import { streamFollower } from '../test/helpers/stream-follower.ts'

/**
 * `node bench/follow-stream.ts`: 12 writers whose transactions commit out of order or roll back, while a client
 * follows the audit stream over a connection that is cut repeatedly. Exits 1 unless it received every row once, in
 * ascending `seq`.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '50000' },
    writers: { type: 'string', default: '12' },
    reconnects: { type: 'string', default: '20' },
  },
})

const { name, heard, faults, cuts, seconds } = await followStream({
  rows: Number(flags.rows),
  writers: Number(flags.writers),
  reconnects: Number(flags.reconnects),
})
console.log(`${name}: ${heard} rows of ${flags.writers} writers, ${cuts} cuts, ${seconds.toFixed(1)} s`)
console.log(faults.length === 0 ? '  each once, rising' : `  FAULTS\n    ${faults.join('\n    ')}`)
process.exitCode = faults.length === 0 && cuts === Number(flags.reconnects) ? 0 : 1

async function followStream(options: {
  rows: number
  writers: number
  reconnects: number
}): Promise<Followed & { cuts: number; seconds: number }> {
  const test = await testService({ audit_stream: true })
  try {
    const { cookie } = await test.account({ roles: ['admin'] })
    const follower = streamFollower(test, { ...options, headers: { cookie } })
    const began = performance.now()
    const [found] = await follow(test.databaseUrl, [follower], options)
    return { ...(found as Followed), cuts: follower.cuts(), seconds: (performance.now() - began) / 1000 }
  } finally {
    await test.close()
  }
}
