import { parseArgs } from 'node:util'
import { testService } from '../src/testing/index.ts'
import { exportFollower, type Follower, follow, listFollower } from '../test/helpers/followers.ts'

/**
 * `npm run bench:follow`: 12 writers whose transactions commit out of order or roll back, while every kind of
 * follower reads the audit log, on a real database. Exits 1 unless each received every row once, in ascending
 * `seq`.
 */
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '50000' },
    writers: { type: 'string', default: '12' },
    'rows-per-transaction': { type: 'string', default: '8' },
  },
})

const test = await testService({ limit_admin_read: 'off' })
try {
  const admin = await test.account({ roles: ['admin'] })
  const followers: Follower[] = [listFollower(admin), exportFollower(test)]
  const began = performance.now()
  const found = await follow(test.databaseUrl, followers, {
    rows: Number(flags.rows),
    writers: Number(flags.writers),
    rowsPerTransaction: Number(flags['rows-per-transaction']),
  })
  console.log(
    `${flags.rows} rows of ${flags.writers} writers, ${((performance.now() - began) / 1000).toFixed(1)} s`,
  )
  for (const { name, heard, faults } of found) {
    console.log(`  ${name}: ${heard} rows, ${faults.length === 0 ? 'each once, rising' : 'FAULTS'}`)
    for (const fault of faults) console.log(`    ${fault}`)
  }
  process.exitCode = found.every(({ faults }) => faults.length === 0) ? 0 : 1
} finally {
  await test.close()
}
