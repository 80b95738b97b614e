import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket, RefusedUpgrade } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'

const test = await serviceForFile()

/** Ends the session of an account once, at the hook below. */
type Ending = () => Promise<unknown>
const endings = new Map<string, Ending>()

/** Another request revokes the credential right after the upgrade has read it as valid. */
function hookTheGap(): void {
  const { callers } = test.service.app
  const read = callers.read
  callers.read = async (...asked) => {
    const caller = await read(...asked)
    const end = endings.get(caller?.account.id ?? '')
    endings.delete(caller?.account.id ?? '')
    await end?.()
    return caller
  }
}

it('a credential that ends between the check of an upgrade and the registration leaves no socket: 200 times', async () => {
  hookTheGap()
  const codes = await Promise.all(Array.from({ length: 10 }, () => roundsOfOneAccount(20)))
  expect(codes.flat()).toHaveLength(200)
  expect(codes.flat().filter((code) => code !== 4001 && code !== 401)).toEqual([])
  expect(codes.flat().filter((code) => code === 4001).length).toBeGreaterThan(100)
})

async function roundsOfOneAccount(rounds: number): Promise<number[]> {
  const { db } = test.service.app
  const { id, cookie } = await test.account()
  const session = (await db.first<{ id: string; expires_at: string }>(sql`
    select id, expires_at from auth_session where account_id = ${id}::uuid`)) as {
    id: string
    expires_at: string
  }
  const codes: number[] = []
  for (let round = 0; round < rounds; round++) {
    let ended: Promise<{ revoked: boolean }> | undefined
    endings.set(id, async () => {
      ended = test.service.operations.revokeSession({ session_id: session.id }, { via: 'test' })
      // Every other time, the upgrade goes on only once the revocation is done.
      if (round % 2 === 0) await ended
    })
    // A late second read of the previous round may trigger the revocation too early, and the upgrade is refused.
    const code = await openSocket(test.url, { cookie }).then(
      async ({ closed }) => (await closed).code,
      (error) => (error instanceof RefusedUpgrade ? error.reply.status : Promise.reject(error)),
    )
    codes.push(code)
    expect(await ended).toEqual({ revoked: true })
    await db.run(sql`
      insert into auth_session (id, account_id, expires_at)
      values (${session.id}, ${id}::uuid, ${session.expires_at}::timestamptz)`)
  }
  return codes
}

it('a credential that cannot be read again closes the socket with 1011: it never counts as good or as gone', async () => {
  const { callers } = test.service.app
  const { id, cookie } = await test.account()
  const read = callers.read
  let reads = 0
  callers.read = async (...asked) => {
    const caller = await read(...asked)
    if (caller?.account.id === id && ++reads === 2) throw refusal('service_unavailable')
    return caller
  }
  const socket = await openSocket(test.url, { cookie })
  expect(await socket.closed).toEqual({ code: 1011, reason: 'internal error' })
  callers.read = read
})
