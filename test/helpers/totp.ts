import { codeAt } from '../../src/second-factor/totp.ts'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { type Reply, send } from './account-routes.ts'

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const bytesOf = (secret: string): Buffer => {
  const bits = Array.from(secret, (letter) => letters.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** The code of a secret, as authenticator apps show it, this many steps from now. */
export const codeOf = (secret: string, steps = 0, now = Date.now()): string =>
  codeAt(bytesOf(secret), Math.floor(now / 30_000) + steps)

/** A code that is wrong now and in the neighbouring steps. */
export function wrongCode(secret: string): string {
  const right = [-2, -1, 0, 1, 2].map((steps) => codeOf(secret, steps))
  for (let n = 0; ; n++) {
    const code = String(n).padStart(6, '0')
    if (!right.includes(code)) return code
  }
}

export type Guarded = TestAccount & { secret: string; recovery_codes: string[] }

/** An account with TOTP. It was confirmed with the code of the previous step, so that the current one still works. */
export async function guarded(
  test: TestService,
  input: Parameters<TestService['account']>[0] = {},
): Promise<Guarded> {
  const account = await test.account(input)
  const { secret } = await account.client.account_totp_enrol()
  // By the clock that judges the code, which may differ from ours by milliseconds.
  const { clock } = test.service.app.db
  const confirm = () => account.client.account_totp_confirm({ code: codeOf(secret, -1, clock.now()) })
  // Repeated, because a step may end between making the code and checking it.
  const { recovery_codes } = await confirm().catch(confirm)
  return { ...account, secret, recovery_codes: recovery_codes ?? [] }
}

/** The first step of a login; the reply has the cookie of the flow. */
export const firstStep = (test: { url: string }, { username, password }: TestAccount): Promise<Reply> =>
  send(test, 'POST /login', { body: { username, password } })

export const secondStep = (
  test: { url: string },
  cookie: string | undefined,
  body: { totp?: string; recovery_code?: string },
): Promise<Reply> => send(test, 'POST /second_factor', { cookie, body })
