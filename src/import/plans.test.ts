import { expect, it } from 'vitest'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const lines = 2000

const test = await serviceForFile()

it('right after an import, a page of accounts reads little more than its rows', async () => {
  const { client } = await test.account({ roles: ['admin'] })
  const users = Array.from({ length: lines }, (_, n) => ({ external_id: `${n}`, username: `imported${n}` }))
  const { imported } = await test.service.operations.importAccounts(users, { source: 'old', via: 'testing' })
  expect(imported).toBe(lines)
  const { scanned, rows } = await workOf(test.databaseUrl, () => client.admin_account_list({ limit: 50 }))
  expect(scanned).not.toContain('account')
  expect(rows.account).toBeLessThan(60)
  expect(rows.actor).toBeLessThan(60)
})
