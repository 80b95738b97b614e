import { afterAll, expect, it } from 'vitest'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

/** An admin who loses the role, or is deleted, while a call waits for a lock gives and takes no authority with that call. */

const test = await serviceForFile({ limit_role_write: 'off', limit_role_revoke: 'off' })
const { operations } = test.service
const operator = { via: 'testing' }
const race = await rival(test.databaseUrl)
afterAll(() => race.close())
await test.account({ roles: ['admin'] })

type Case = {
  roles: string[]
  prepare?(target: TestAccount): Promise<unknown>
  act(admin: TestAccount, target: TestAccount): Promise<unknown>
}
const cases: Record<string, Case> = {
  role_grant_assign: {
    roles: [],
    act: ({ client }, { id: to_account_id }) => client.role_grant_assign({ to_account_id, role: 'admin' }),
  },
  role_grant_revoke: {
    roles: ['admin'],
    act: async ({ client }, { actor_id }) => {
      const { holders } = await client.role_holder_list({ role: 'admin' })
      const { id } =
        holders.map(({ role_grant }) => role_grant).find((held) => held.actor_id === actor_id) ?? {}
      return await client.role_grant_revoke({ actor_id, role_grant_id: id as string })
    },
  },
  account_undelete: {
    roles: ['admin'],
    prepare: ({ id: account_id }) => operations.deleteAccount({ account_id }, operator),
    act: ({ client }, { id: account_id }) => client.account_undelete({ account_id }),
  },
}

/** What happens to the admin meanwhile, and the reason that the call is then refused with. */
const losses = [
  [
    'the role is revoked',
    'insufficient_permissions',
    'update role_grant set revoked_at = now() where actor_id = $1',
  ],
  ['the actor is removed', 'account_vanished', 'update actor set deleted_at = now() where id = $1'],
  [
    'the account is purged',
    'account_vanished',
    'delete from account where id = (select account_id from actor where id = $1)',
  ],
] as const

const everyLoss = losses.flatMap((loss) =>
  Object.entries(cases).map(([method, of]) => [method, ...loss, of] as const),
)

/** Accounts are locked in the order of their ids: a call that waits for the first has not locked the second. */
const inOrderOfLocks = async () => {
  const [one, other] = [await test.account(), await test.account()]
  return one.id < other.id ? ([one, other] as const) : ([other, one] as const)
}

it.each(everyLoss)(
  '%s is refused if %s: %s',
  async (_method, _loss, reason, change, { roles, prepare, act }) => {
    const [target, admin] = await inOrderOfLocks()
    await test.roleGrant({ actor_id: admin.actor_id, role: 'admin' })
    for (const role of roles) await test.roleGrant({ actor_id: target.actor_id, role })
    await prepare?.(target)
    await scenario(
      test,
      async () => {
        await race.begin('select from account where id = $1 for update', [target.id])
        const call = act(admin, target)
        await race.blocks(1)
        await race.query(change, [admin.actor_id])
        return await race.release(call)
      },
      { reason },
    )
    expect(await operations.listActors({ account_id: target.id })).toMatchObject([
      { deleted_at: prepare ? expect.any(String) : null, role_grants: roles.map((role) => ({ role })) },
    ])
  },
)
