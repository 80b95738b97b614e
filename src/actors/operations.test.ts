import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const test = await serviceForFile({ max_actors: 3 })

const by = { via: 'cli' }
const nobody = '11111111-1111-1111-1111-111111111111'
const ops = () => test.service.operations
const row = (event_type: string, account: { id: string }, actor_id: string) => ({
  event_type,
  actor_id: null,
  account_id: null,
  target_account_id: account.id,
  target_actor_id: actor_id,
  ip: null,
  metadata: by,
})

describe('addActor', () => {
  it('adds actors up to the limit of live ones', async () => {
    const ada = await test.account()
    const add = (name: string) => ops().addActor({ account_id: ada.id, name }, by)
    const work = await add('  Ada at work ')
    expect(work).toMatchObject({ account_id: ada.id, name: 'Ada at work', deleted_at: null })
    await add('')
    await scenario(test, () => add('one more'), { reason: 'actor_limit' })
    await ops().removeActor({ actor_id: work.id }, by)
    await add('one more')
    const names = (await ops().listActors({ account_id: ada.id })).map(({ name }) => name)
    expect(names.toSorted()).toEqual(['', 'Ada at work', 'one more', ada.username])
  })

  it('leaves its row', async () => {
    const ada = await test.account()
    const before = await test.service.app.db.first<{ written: number }>(
      sql`select max(written) as written from audit_entries()`,
    )
    const { id } = await ops().addActor({ account_id: ada.id, name: 'x' }, by)
    const rows = await test.service.app.db.rows(sql`
      select event_type, actor_id, account_id, target_account_id, target_actor_id, ip, metadata
      from audit_entries() where written > ${before?.written}`)
    expect(rows).toEqual([row('actor_create', ada, id)])
  })

  it.each([
    ['101 code points', { name: '🙂'.repeat(101) }, 'invalid_params'],
    ['a control character', { name: 'a\u0007b' }, 'invalid_params'],
    ['an unknown account', { account_id: nobody, name: 'x' }, 'account_not_found'],
  ])('refuses %s', async (_what, input, reason) => {
    const { id } = await test.account()
    await scenario(test, () => ops().addActor({ account_id: id, ...input }, by), { reason })
  })

  it('takes 100 code points', async () => {
    const { id } = await test.account()
    const name = '🙂'.repeat(100)
    expect(await ops().addActor({ account_id: id, name }, by)).toMatchObject({ name })
  })
})

describe('renameActor', () => {
  it('changes the name and says when and who', async () => {
    const ada = await test.account()
    const rename = () =>
      ops().renameActor(
        { actor_id: ada.actor_id, name: ' Ötzi ' },
        { ...by, actor_id: ada.actor_id, account_id: ada.id },
      )
    await scenario(test, rename, {
      audit: [{ ...row('actor_rename', ada, ada.actor_id), actor_id: ada.actor_id, account_id: ada.id }],
    })
    const stored = await test.service.app.db.first(sql`
      select name, name_key, updated_by, updated_at is not null as dated from actor where id = ${ada.actor_id}::uuid`)
    expect(stored).toEqual({ name: 'Ötzi', name_key: 'ötzi', updated_by: ada.actor_id, dated: true })
  })

  it('writes nothing if the name is the present one', async () => {
    const ada = await test.account()
    const renamed = await scenario(
      test,
      () => ops().renameActor({ actor_id: ada.actor_id, name: ` ${ada.username} ` }, by),
      {},
    )
    expect(renamed).toMatchObject({ id: ada.actor_id, name: ada.username, updated_at: null })
  })

  it('refuses an actor that is unknown, removed, or of a deleted account', async () => {
    const ada = await test.account()
    const removed = await test.actor(ada.id, 'second')
    await ops().removeActor({ actor_id: removed }, by)
    const gone = await test.account()
    await ops().deleteAccount({ account_id: gone.id }, by)
    for (const actor_id of [nobody, removed, gone.actor_id]) {
      await scenario(test, () => ops().renameActor({ actor_id, name: 'x' }, by), {
        reason: 'actor_not_found',
      })
      await scenario(test, () => ops().removeActor({ actor_id }, by), { reason: 'actor_not_found' })
    }
  })
})

describe('actor_rename', () => {
  it('changes the name of the acting actor, which need not be unique', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const rename = () => ada.client.actor_rename({ name: ` ${bob.username} ` })
    const changed = await scenario(test, rename, {
      audit: [
        {
          ...row('actor_rename', ada, ada.actor_id),
          actor_id: ada.actor_id,
          account_id: ada.id,
          ip: '127.0.0.1',
          metadata: null,
        },
      ],
    })
    expect(changed).toEqual({ ok: true, changed: true })
    expect(await scenario(test, rename)).toEqual({ ok: true, changed: false })
    const { actors } = await bob.client.actor_lookup({ ids: [ada.actor_id] })
    expect(actors).toEqual([{ id: ada.actor_id, username: ada.username, display_name: bob.username }])
  })

  it('names no other actor, and takes no name that is not one', async () => {
    const [ada, bob] = [await test.account(), await test.account()]
    const second = await test.actor(ada.id, 'second')
    const rename = (acting: string, name: string) => () => ada.client.actor_rename({ acting, name })
    await rename(second, 'Ada at work')()
    expect((await ops().listActors({ account_id: ada.id })).map(({ name }) => name)).toEqual([
      ada.username,
      'Ada at work',
    ])
    await scenario(test, rename(bob.actor_id, 'mine'), { reason: 'actor_not_on_account' })
    await scenario(test, rename(second, 'a\u0007b'), { reason: 'invalid_params' })
  })

  it('is off with its setting', async () => {
    const fixed = await testService({ actor_rename: false, database_url: test.databaseUrl })
    const { client } = await fixed.sessions.create((await test.account()).id)
    await scenario(fixed, () => client.actor_rename({ name: 'x' }), { reason: 'method_not_found' })
    await fixed.close()
  })
})

describe('removeActor', () => {
  it('takes the actor out of every choice, and an account undelete does not bring it back', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'second')
    await expect(ada.client.cell_create({ data: {} })).rejects.toMatchObject({ reason: 'actor_required' })
    await scenario(test, () => ops().removeActor({ actor_id: second }, by), {
      audit: [row('actor_delete', ada, second)],
    })
    await expect(ada.client.cell_create({ data: {}, acting: second })).rejects.toMatchObject({
      reason: 'actor_not_on_account',
    })
    await ada.client.cell_create({ data: {} })

    await ops().deleteAccount({ account_id: ada.id }, by)
    // Even if both happened in the same millisecond.
    await test.service.app.db.run(sql`
      update actor set deleted_at = account.deleted_at from account
      where actor.id = ${second}::uuid and account.id = account_id`)
    await ops().undeleteAccount({ account_id: ada.id }, by)
    const live = (await ops().listActors({ account_id: ada.id })).filter((actor) => actor.deleted_at === null)
    expect(live.map(({ id }) => id)).toEqual([ada.actor_id])
  })

  it('refuses the last one', async () => {
    const ada = await test.account()
    await scenario(test, () => ops().removeActor({ actor_id: ada.actor_id }, by), { reason: 'last_actor' })
  })

  it('protects the keeper first, then the last admin; a second admin elsewhere frees it', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'second')
    for (const role of ['keeper', 'admin']) await test.roleGrant({ actor_id: second, role })
    const remove = () => ops().removeActor({ actor_id: second }, by)
    await scenario(test, remove, { reason: 'cannot_delete_keeper' })
    await ops().transferKeeper({ actor_id: ada.actor_id }, by)
    await scenario(test, remove, { reason: 'cannot_delete_last_admin' })

    const deleted = await test.account({ roles: ['admin'] })
    await ops().deleteAccount({ account_id: deleted.id }, by)
    await test.roleGrant({
      actor_id: ada.actor_id,
      role: 'admin',
      scope_kind: 'team',
      scope_id: nobody,
    })
    await scenario(test, remove, { reason: 'cannot_delete_last_admin' })

    await test.roleGrant({ actor_id: ada.actor_id, role: 'admin' })
    await remove()
  })
})
