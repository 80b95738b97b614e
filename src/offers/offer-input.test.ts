import { describe, expect, it } from 'vitest'
import { holder, nobody, registries, room } from '../../test/helpers/offers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const test = await serviceForFile({ ...registries, limit_role_write: 'off' })
const pair = async () => ({ ada: await holder(test), bob: await test.account() })

describe('the input of role_grant_offer_create', () => {
  const issueOf = async (more: object) => {
    const { ada, bob } = await pair()
    const outcome = await ada.client.try.role_grant_offer_create({
      to_account_id: bob.id,
      role: 'teacher',
      ...more,
    })
    if (outcome.ok) return 'ok'
    const [first] = outcome.error.data.issues as { path: string[]; code: string }[]
    return [first?.path.join('.'), first?.code]
  }
  it.each([
    [{ scope_id: room }, ['scope_kind', 'invalid_type']],
    [{ scope_id: room, scope_kind: null }, ['scope_kind', 'invalid_type']],
    [{ scope_kind: 'team' }, ['scope_id', 'invalid_type']],
    [{ scope_kind: 'team', scope_id: null }, ['scope_id', 'invalid_type']],
    [{ scope_kind: 'x', scope_id: room }, ['scope_kind', 'unknown_scope_kind']],
    [{ scope_kind: 'a'.repeat(65), scope_id: room }, ['scope_kind', 'too_big']],
    [{ scope_kind: 'a\0', scope_id: room }, ['scope_kind', 'invalid_format']],
    [{ scope_kind: null, scope_id: null }, 'ok'],
    [{ role: 'A' }, ['role', 'invalid_format']],
    [{ expires_in_days: 0 }, ['expires_in_days', 'too_small']],
    [{ expires_in_days: 366 }, ['expires_in_days', 'too_big']],
    [{ expires_in_days: 1.5 }, ['expires_in_days', 'invalid_type']],
    [{ expires_in_days: '30' }, ['expires_in_days', 'invalid_type']],
    [{ expires_in_days: null }, 'ok'],
    [{ expires_in_days: 365 }, 'ok'],
    [{ grant_expires_at: '2020-01-01T00:00:00Z' }, ['grant_expires_at', 'too_small']],
    [{ grant_expires_at: '9999-12-31T23:59:59.999Z' }, 'ok'],
    [{ grant_expires_at: null }, 'ok'],
    [{ message: 'x'.repeat(500) }, 'ok'],
    [{ message: 'x'.repeat(501) }, ['message', 'too_big']],
    [{ message: '😀'.repeat(250) }, 'ok'],
    [{ message: '😀'.repeat(251) }, ['message', 'too_big']],
    [{ message: '\ud800' }, ['message', 'invalid_format']],
    [{ message: 'a\0' }, ['message', 'invalid_format']],
    [{ from_actor_id: nobody }, ['from_actor_id', 'unrecognized_keys']],
  ])('%j: %j', async (more, issue) => {
    expect(await issueOf(more)).toEqual(issue)
  })
})
