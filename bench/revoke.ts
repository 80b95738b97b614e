import { parseArgs } from 'node:util'
import { sql } from '../src/db/db.ts'
import { type TestAccount, testService } from '../src/testing/index.ts'
import { openSocket } from '../test/helpers/sockets.ts'
import { median, quantile, short, table } from './numbers.ts'

/**
 * `npm run bench:revoke`: revokes a credential on one node while requests with it are in flight on two. Both nodes
 * must refuse every request that starts after the response; exits 1 if one is admitted. Also measures how long the
 * credential's sockets stay open.
 */
const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10000' },
    /** How many of the rounds first open a socket on each node. */
    sockets: { type: 'string', default: '500' },
  },
})

/** Requests in flight with the credential on each node while it is revoked. */
const inFlight = 3

const near = await testService({ limit_admin_write: 'off' })
const far = await testService({ database_url: near.databaseUrl })
try {
  const admin = await near.account({ roles: ['admin'] })
  const account = await near.account()
  let admitted = 0
  const lives: number[] = []
  for (let round = 0; round < Number(flags.rounds); round++) {
    const cookie = await signedIn(account)
    if (round < Number(flags.sockets)) lives.push(...(await timeToClose(cookie)))
    else await whileRequestsRun(cookie)
    const after = await Promise.all([near, far].map((node) => node.client(cookie).try.account_verify()))
    admitted += after.filter(({ ok }) => ok).length
    if (round % 1000 === 999) await near.service.app.db.run(sql`truncate audit_inbox, audit_log, audit_cell`)
  }
  console.log(`${flags.rounds} revocations, ${admitted} requests admitted after the response`)
  const figures = [median(lives), quantile(lives, 0.99), Math.max(...lives)].map(short)
  console.log(
    table(['Sockets on two nodes', 'p50 ms', 'p99 ms', 'max ms'], [['answer to close', ...figures]]),
  )
  process.exitCode = admitted === 0 ? 0 : 1

  /** Ends every session of the account. */
  async function revoke(): Promise<void> {
    await admin.client.admin_session_revoke_all({ account_id: account.id })
  }

  async function whileRequestsRun(cookie: string): Promise<void> {
    const running = [near, far].flatMap((node) =>
      Array.from({ length: inFlight }, () => node.client(cookie).try.account_verify()),
    )
    await revoke()
    await Promise.all(running)
  }

  async function timeToClose(cookie: string): Promise<number[]> {
    const sockets = await Promise.all([near, far].map(({ url }) => openSocket(url, { cookie })))
    const closed = sockets.map((socket) => socket.closed.then(() => performance.now()))
    await revoke()
    const answered = performance.now()
    return (await Promise.all(closed)).map((at) => Math.max(0, at - answered))
  }
} finally {
  await far.close()
  await near.close()
}

async function signedIn({ id }: TestAccount): Promise<string> {
  return (await near.sessions.create(id)).cookie
}
