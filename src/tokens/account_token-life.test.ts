import { describe, expect, it } from 'vitest'
import { eternal, plantTokens, tokenOf } from '../../test/helpers/callers.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const full = { kind: 'full' } as const
const test = await serviceForFile()

const tokensOf = async ({ client }: TestAccount) => (await client.account_token_list()).tokens
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)

describe('beyond ten tokens', () => {
  it('the oldest unexpired one ends, which the log says; expired ones take no slot and stay', async () => {
    const ada = await test.account()
    const expired = await plantTokens(test, ada, ['9 days', '8 days', '7 days'], ['1 day', '1 day', '1 day'])
    const made: string[] = []
    for (let i = 0; i < 10; i++) made.push((await tokenOf(test, ada)).id)
    expect(await tokensOf(ada)).toHaveLength(13)
    await scenario(test, () => tokenOf(test, ada), {
      audit: [
        { event_type: 'token_create', account_id: ada.id, actor_id: null },
        {
          event_type: 'token_revoke',
          account_id: ada.id,
          actor_id: null,
          target_account_id: ada.id,
          metadata: { token_id: made[0], cause: 'cap' },
        },
      ],
    })
    const left = (await tokensOf(ada)).map(({ id }) => id)
    expect(left).toHaveLength(13)
    expect(left).not.toContain(made[0])
    expect(left).toEqual(expect.arrayContaining([...expired, ...made.slice(1)]))
  })

  it('of one instant, ids decide which ends', async () => {
    const ada = await test.account()
    const same = (await plantTokens(test, ada, Array(10).fill('1 hour'))).sort()
    await tokenOf(test, ada)
    const left = (await tokensOf(ada)).map(({ id }) => id)
    expect(same.filter((id) => !left.includes(id))).toEqual([same[0]])
  })

  it('parallel creations leave exactly ten, whatever their number, and all of them answer', async () => {
    const ada = await test.account()
    const made = await Promise.all(Array.from({ length: 20 }, () => tokenOf(test, ada)))
    const left = (await tokensOf(ada)).map(({ id }) => id)
    expect(left).toHaveLength(10)
    expect(made.map(({ id }) => id)).toEqual(expect.arrayContaining(left))
    const alive = await Promise.all(made.map(async ({ client }) => (await client.try.account_verify()).ok))
    expect(alive.filter(Boolean)).toHaveLength(10)
  })

  it('is another number, or none, as configured', async () => {
    for (const [max_tokens, left] of [
      [1, 1],
      ['off', 13],
    ] as const) {
      await using other = await testService({ max_tokens })
      const ada = await other.account()
      for (let i = 0; i < 13; i++) await tokenOf(other, ada)
      expect((await ada.client.account_token_list()).tokens).toHaveLength(left)
    }
  })
})

describe('the end of a token', () => {
  it('comes at the instant of expires_at', async () => {
    const ada = await test.account()
    const { id, client } = await tokenOf(test, ada)
    await run(sql`update api_token set expires_at = now() + interval '1 hour' where id = ${id}`)
    expect(await reasonOf(client.account_verify())).toBe('ok')
    await run(
      sql`update api_token set expires_at = date_trunc('milliseconds', clock_timestamp()) where id = ${id}`,
    )
    expect(await reasonOf(client.account_verify())).toBe('authentication_required')
  })

  it('comes with a password change and with the deletion of the account', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const tokens = [await tokenOf(test, ada), await tokenOf(test, bob)]
    await ada.client.account.password({ current_password: ada.password, new_password: 'another password' })
    await bob.client.account_delete()
    for (const { client } of tokens)
      expect(await reasonOf(client.account_verify())).toBe('authentication_required')
  })
})

describe('while a token is being made', () => {
  it.each([
    [
      'the session that asked ends',
      'delete from auth_session where account_id = $1',
      'authentication_required',
    ],
    [
      'that session expires',
      `update auth_session set expires_at = date_trunc('milliseconds', now()) where account_id = $1`,
      'authentication_required',
    ],
    ['the account is deleted', 'update account set deleted_at = now() where id = $1', 'account_vanished'],
    ['the account is purged', 'delete from account where id = $1', 'account_vanished'],
  ])('%s: none is made, and no row is left', async (_what, change, reason) => {
    const ada = await test.account()
    const other = await rival(test.databaseUrl)
    try {
      await other.begin('select from account where id = $1 for update', [ada.id])
      await other.query(change, [ada.id])
      await scenario(
        test,
        () => other.release(ada.client.account_token_create({ scope: full, lifetime: eternal })),
        { reason },
      )
    } finally {
      await other.close()
    }
    const left = await test.service.app.db.rows(sql`
      select from api_token where account_id = ${ada.id}::uuid`)
    expect(left).toEqual([])
  })
})
