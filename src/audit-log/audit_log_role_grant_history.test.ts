import { beforeEach, describe, expect, it } from 'vitest'
import { auditRows, clearAudit } from '../../test/helpers/audit-rows.ts'
import { call, dataOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ roles: [{ name: 'teacher', grant_paths: ['system'] }] })
const [admin, ada] = await Promise.all([test.account({ roles: ['admin'] }), test.account()])
beforeEach(() => clearAudit(test))

type Input = NonNullable<Parameters<TestAccount['client']['audit_log_role_grant_history']>[0]>
const history = (input: Input = {}) => admin.client.audit_log_role_grant_history(input)
const plant = (count: number) =>
  auditRows(test, count, {
    event_type: sql`(array['role_grant_create', 'role_grant_revoke', 'role_grant_offer_create'])[i % 3 + 1]`,
    outcome: sql`case when i % 5 = 0 then 'failure' else 'success' end`,
  })
const shown = ({ events }: Awaited<ReturnType<typeof history>>) => events.map(({ metadata }) => metadata?.n)
const of = (count: number) => Array.from({ length: count }, (_, i) => count - i).filter((n) => n % 3 !== 2)

describe('audit_log_role_grant_history', () => {
  it('shows what was conferred and revoked, with whose it is, and nothing else', async () => {
    const { actor_id } = ada
    const grant = { actor_id, role: 'teacher', path: 'system' }
    const { role_grant_id } = await test.service.operations.grantRole(grant, { via: 'testing' })
    await ada.client.cell_create({ data: {} })
    await test.service.operations.revokeRole({ actor_id, role_grant_id }, { via: 'testing' })
    const { events } = await history()
    const target = { target_actor_id: actor_id, target_account_id: ada.id, target_username: ada.username }
    expect(events).toMatchObject([
      { event_type: 'role_grant_revoke', username: null, ...target },
      { event_type: 'role_grant_create', username: null, ...target },
    ])
  })

  it('walks both types and both outcomes in one order, newest first, each row once', async () => {
    await plant(50)
    const walked = []
    let page = await history({ limit: 4 })
    while (page.next_cursor !== null) {
      walked.push(...shown(page))
      page = await history({ limit: 4, cursor: page.next_cursor })
    }
    expect([...walked, ...shown(page)]).toEqual(of(50))
  })

  it('is 50 rows without a limit, 200 at most, after an offset', async () => {
    await plant(320)
    expect(shown(await history())).toEqual(of(320).slice(0, 50))
    expect(shown(await history({ limit: 200, offset: 10 }))).toEqual(of(320).slice(10, 210))
  })

  it.each([
    [{ limit: 0 }, 'limit too_small'],
    [{ limit: 201 }, 'limit too_big'],
    [{ offset: 10_001 }, 'offset too_big'],
    [{ since_seq: 1 }, 'since_seq unrecognized_keys'],
    [{ event_type: 'login' }, 'event_type unrecognized_keys'],
  ])('refuses %j', async (input, wanted) => {
    const reply = await rpc(test.url, call('audit_log_role_grant_history', input), { cookie: admin.cookie })
    const [issue] = (dataOf(reply)?.issues ?? []) as { path: unknown[]; code: string }[]
    expect(`${issue?.path} ${issue?.code}`).toBe(wanted)
  })
})
