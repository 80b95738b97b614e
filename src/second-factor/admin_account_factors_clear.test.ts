import { describe, expect, it } from 'vitest'
import { daemonHeaders } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { firstStep, guarded } from '../../test/helpers/totp.ts'
import { sha256Hex } from '../auth/secrets.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const test = await serviceForFile()
const db = test.service.app.db
const root = await test.account({ roles: ['admin'] })
const keeper = await test.account({ roles: ['keeper', 'admin'] })
const clear = ({ id }: Pick<TestAccount, 'id'>, by = root) =>
  by.client.admin_account_factors_clear({ account_id: id })
const passkey = ({ id }: TestAccount, key: string, first: boolean, second: boolean) =>
  db.run(sql`
    insert into account_passkey (id, account_id, public_key, counter, device, backed_up, first_factor, second_factor, rp_id, name)
    values (${key}, ${id}::uuid, '', 0, 'single', false, ${first}, ${second}, 'localhost', 'key')`)

describe('clearing the factors of another account', () => {
  it('ends its TOTP, its recovery codes and begun sign-ins; passkeys stay as a first factor', async () => {
    const ada = await guarded(test)
    await passkey(ada, 'both', true, true)
    await passkey(ada, 'step', false, true)
    await passkey(ada, 'first', true, false)
    await ada.client.account_totp_enrol()
    await firstStep(test, ada)
    const target = { target_account_id: ada.id, account_id: root.id, actor_id: root.actor_id }
    const row = (metadata: object) => ({
      event_type: 'factor_remove',
      ...target,
      metadata: { ...metadata, credential_type: 'session' },
    })
    const answer = await scenario(test, () => clear(ada), {
      audit: [
        { event_type: 'factor_remove', ...target },
        row({ factor: 'passkey', factor_id: sha256Hex('both') }),
        row({ factor: 'passkey', factor_id: sha256Hex('step') }),
        row({ factor: 'recovery_codes' }),
      ],
    })
    expect(answer).toEqual({ ok: true, totp: true, passkeys: 2 })
    const shown = await ada.client.account_sign_in_get()
    expect(shown).toMatchObject({ totp: null, recovery_codes_left: 0, second_factor: { active: false } })
    expect(shown.passkeys.map(({ id, second_factor }) => [id, second_factor]).sort()).toEqual([
      ['both', false],
      ['first', false],
    ])
    expect(await db.rows(sql`select from sign_in_flow where account_id = ${ada.id}::uuid`)).toEqual([])
    expect((await firstStep(test, ada)).status).toBe(200)
    expect(await scenario(test, () => clear(ada))).toEqual({ ok: true, totp: false, passkeys: 0 })
  })

  it('is refused for admins and the keeper, and for accounts that are not there', async () => {
    const other = await test.account({ roles: ['admin'] })
    for (const { id } of [other, keeper])
      await scenario(test, () => clear({ id }), {
        reason: 'privileged_target',
        audit: [
          {
            event_type: 'factor_remove',
            outcome: 'failure',
            target_account_id: id,
            metadata: { reason: 'privileged_target' },
          },
        ],
      })
    const nobody = { id: '00000000-0000-4000-8000-00000000dead' }
    await scenario(test, () => clear(nobody), {
      reason: 'account_not_found',
      audit: [{ event_type: 'factor_remove', outcome: 'failure', target_account_id: null }],
    })
  })

  it('needs an admin with a fresh session, or the daemon token', async () => {
    const [ada, eve] = [await guarded(test), await test.account({ roles: ['admin'] })]
    expect(await reasonOf(clear(ada, ada))).toBe('insufficient_permissions')
    await db.run(sql`update auth_session set authenticated_at = now() - interval '601 seconds'
      where account_id = ${eve.id}::uuid`)
    expect(await reasonOf(clear(ada, eve))).toBe('fresh_authentication_required')
    const daemon = test.daemonClient(daemonHeaders(test)['x-daemon-token'])
    expect(await daemon.admin_account_factors_clear({ account_id: ada.id })).toMatchObject({ totp: true })
  })
})

it('an operator clears those of anybody, also where a role requires them, and sees what is there', async () => {
  const ada = await guarded(test, { roles: ['admin'] })
  await using node = await testService({ database_url: test.databaseUrl, require_second_factor: 'admin' })
  const { listSignIn, clearFactors } = node.service.operations
  const shown = { password: true, passkeys: 0, links: [] }
  expect(await listSignIn({ account_id: ada.id })).toEqual({ ...shown, second_factor: true })
  expect(await clearFactors({ account_id: ada.id }, { via: 'cli' })).toEqual({ totp: true, passkeys: 0 })
  expect(await listSignIn({ account_id: ada.id })).toEqual({ ...shown, second_factor: false })
})

it('the list of accounts shows what each signs in with', async () => {
  const ada = await guarded(test)
  await passkey(ada, 'listed', true, false)
  await db.run(sql`insert into account_link (account_id, provider, issuer, subject)
    values (${ada.id}::uuid, 'school', 'https://school.example', 's')`)
  await db.run(sql`update account set password_hash = '*' where id = ${ada.id}::uuid`)
  const { accounts } = await root.client.admin_account_list({ limit: 200 })
  const shown = new Map(accounts.map(({ account, sign_in }) => [account.id, sign_in]))
  expect(shown.get(ada.id)).toEqual({ password: false, second_factor: true, passkeys: 1, links: ['school'] })
  expect(shown.get(root.id)).toEqual({ password: true, second_factor: false, passkeys: 0, links: [] })
})
