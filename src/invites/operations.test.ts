import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { scenario } from '../testing/index.ts'
import { createInvite } from './invite_create.ts'
import { deleteInvite } from './invite_delete.ts'
import { listInvites } from './invite_list.ts'

const test = await serviceForFile()
const app = test.service.app
const admin = await test.account({ username: 'admin', roles: ['admin'] })

const cli = { via: 'cli' }
const nobody = { actor_id: null, account_id: null, target_account_id: null, ip: null }

describe('invites by operator and library calls', () => {
  it('are made without an inviter, or on behalf of an actor, with one row that says by which way', async () => {
    const made = await scenario(test, () => createInvite(app, { username: 'Guest1' }, cli), {
      audit: [{ event_type: 'invite_create', ...nobody }],
    })
    expect(made).toMatchObject({ username: 'guest1', email: null, created_by: null })
    const behalf = { via: 'crm', actor_id: admin.actor_id, account_id: admin.id, ip: '192.0.2.1' }
    const { via: _, ...columns } = behalf
    const other = await scenario(test, () => createInvite(app, { email: 'guest@x.example' }, behalf), {
      audit: [{ event_type: 'invite_create', ...columns }],
    })
    expect(other?.created_by).toBe(admin.actor_id)
  })

  it('leave the way in the metadata of success and refusal', async () => {
    const { id } = await createInvite(app, { username: 'guest2' }, cli)
    await scenario(test, () => deleteInvite(app, { invite_id: id }, cli), {
      audit: [{ event_type: 'invite_delete', ...nobody, metadata: { invite_id: id, via: 'cli' } }],
    })
    const reason = 'invite_not_found'
    await scenario(test, () => deleteInvite(app, { invite_id: id }, cli), {
      reason,
      audit: [
        {
          event_type: 'invite_delete',
          outcome: 'failure',
          ...nobody,
          metadata: { reason, attempted_invite_id: id, via: 'cli' },
        },
      ],
    })
  })

  it.each([
    ['invite_account_exists_username', { username: 'ADMIN' }],
    ['invite_duplicate', { email: 'twice@x.example' }],
  ])('are refused with %s like the method', async (reason, input) => {
    if (reason === 'invite_duplicate') await createInvite(app, input, cli)
    await scenario(test, () => createInvite(app, input, cli), {
      reason,
      audit: [
        { event_type: 'invite_create', outcome: 'failure', ...nobody, metadata: { reason, via: 'cli' } },
      ],
    })
  })

  it.each([
    ['nothing', {}, [], 'invite_identifier_required'],
    ['a bad username', { username: 'a b c' }, ['username'], 'invalid_format'],
    ['a past expiry', { username: 'abc', expires_at: '2020-01-01T00:00:00Z' }, ['expires_at'], 'too_small'],
    ['a lone surrogate', { email: '\ud800@x.example' }, ['email'], 'invalid_format'],
    ['an unknown key', { username: 'abc', via: 'cli' }, ['via'], 'unrecognized_keys'],
  ])('refuse %s as the method does', async (_what, input, path, code) => {
    const refused = scenario(test, () => createInvite(app, input, cli), {
      reason: 'invalid_params',
    })
    await refused
    await expect(createInvite(app, input, cli)).rejects.toMatchObject({ data: { issues: [{ path, code }] } })
  })

  it('refuse an id that is none', async () => {
    await expect(deleteInvite(app, { invite_id: 'x' }, cli)).rejects.toMatchObject({
      data: { reason: 'invalid_params' },
    })
    await expect(deleteInvite(app, { invite_id: randomUUID() }, cli)).rejects.toMatchObject({
      data: { reason: 'invite_not_found' },
    })
  })

  it('are listed as by the method, page by page, with cursors of their own', async () => {
    for (let n = 0; n < 4; n++) await createInvite(app, { username: `page${n}` }, cli)
    const { invites } = await admin.client.invite_list()
    const first = await listInvites(app, { limit: 3 })
    const rest = await listInvites(app, { cursor: first.next_cursor })
    expect([...first.invites, ...rest.invites]).toEqual(invites)
    expect(rest.next_cursor).toBeNull()
    expect((await listInvites(app)).invites).toEqual(invites)
    await expect(admin.client.invite_list({ cursor: first.next_cursor })).rejects.toMatchObject({
      reason: 'invalid_params',
    })
  })
})
