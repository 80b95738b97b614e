import { afterAll, expect, it } from 'vitest'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

/** An admin who loses the role while a call waits for a lock gives and takes no authority with that call. */

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

it.each(Object.entries(cases))('%s is refused', async (_method, { roles, prepare, act }) => {
  const [admin, target] = [await test.account({ roles: ['admin'] }), await test.account({ roles })]
  await prepare?.(target)
  await scenario(
    test,
    async () => {
      await race.begin('select from account where id = $1 for update', [target.id])
      const call = act(admin, target)
      await race.blocks(1)
      await race.query(`update role_grant set revoked_at = now() where actor_id = $1`, [admin.actor_id])
      return await race.release(call)
    },
    { reason: 'insufficient_permissions' },
  )
  expect(await operations.listActors({ account_id: target.id })).toMatchObject([
    { deleted_at: prepare ? expect.any(String) : null, role_grants: roles.map((role) => ({ role })) },
  ])
})
