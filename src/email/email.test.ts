import { beforeEach, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { mailIsDown, messagesTo, tokenMailedTo } from '../../test/helpers/mailed.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { rival } from '../../test/helpers/race.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({
  ...mailIsDown,
  limit_mail: 'off',
  limit_ticket_ip: 'off',
  login_fail_floor_ms: 0,
})
const silent = await serviceForFile({ database_url: test.databaseUrl })
const by = { via: 'cli' }
const { operations, app } = test.service

let ada: TestAccount
let bob: TestAccount
beforeEach(async () => {
  await test.reset()
  ada = await test.account({ username: 'ada', email: 'ada@x.io' })
  bob = await test.account({ username: 'bob', email: 'bob@x.io' })
})

const tokenTo = (account: { id: string }) => tokenMailedTo(test, account)
const emailOf = async ({ client }: TestAccount) => {
  const { email, email_verified } = await client.account_verify()
  return [email, email_verified]
}
const confirm = (token: string) => send(test, 'POST /email_confirm', { body: { token } })
const confirmed = async (token: string) => {
  const { status, json } = await confirm(token)
  return [status, json?.error ?? json]
}
const verify = ({ id }: TestAccount) => operations.verifyEmail({ account_id: id }, by)
const ok = [200, { ok: true }]
const gone = [404, 'ticket_not_found']

describe('account_email_verify_send', () => {
  it('mails a link to the address, which verifies it once', async () => {
    expect(await ada.client.account_email_verify_send()).toEqual({ ok: true, sent: true })
    expect(await messagesTo(test, ada)).toMatchObject([{ what: 'email_verify', to: 'ada@x.io' }])
    const token = await tokenTo(ada)
    await scenario(test, () => confirm(token), {
      audit: [{ event_type: 'account_update', account_id: ada.id, target_account_id: ada.id }],
    })
    expect(await emailOf(ada)).toEqual(['ada@x.io', true])
    expect(await confirmed(token)).toEqual(gone)
  })

  it('sends nothing without an address, or if it is verified', async () => {
    await verify(ada)
    const none = await test.account()
    for (const { client } of [ada, none])
      expect(await scenario(test, () => client.account_email_verify_send())).toEqual({
        ok: true,
        sent: false,
      })
  })

  it('is done by itself for those who sign up with an address', async () => {
    await operations.setSettings({ open_signup: true }, by)
    const body = { username: 'newcomer', password: 'a long password', email: 'new@x.io', locale: 'de-AT' }
    const { json, cookie } = await send(test, 'POST /signup', { body })
    const account = json?.account as { id: string }
    const rows = await app.db.rows(
      sql`select locale from message_outbox where account_id = ${account.id}::uuid`,
    )
    expect(rows).toEqual([{ locale: 'de-AT' }])
    expect(await confirmed(await tokenTo(account))).toEqual(ok)
    const { client } = { client: test.client(cookie) }
    expect(await client.account_verify()).toMatchObject({ email: 'new@x.io', email_verified: true })
  })
})

describe('account_email_change', () => {
  const change = (email: string | null, { client }: TestAccount = ada) =>
    client.account_email_change({ email })

  it('changes nothing until the new address is confirmed, and tells the old one if it is verified', async () => {
    await verify(ada)
    const changed = await scenario(test, () => change('Ada@new.io'), {
      audit: [{ event_type: 'ticket_create', account_id: ada.id, target_account_id: ada.id }],
    })
    expect(changed).toEqual({ ok: true, pending: true })
    expect(await emailOf(ada)).toEqual(['ada@x.io', true])
    expect(await confirmed(await tokenTo(ada))).toEqual(ok)
    expect(await emailOf(ada)).toEqual(['Ada@new.io', true])
    expect((await messagesTo(test, ada)).map(({ what, to }) => [what, to])).toEqual([
      ['email_change', 'Ada@new.io'],
      ['email_change_requested', 'ada@x.io'],
      ['email_changed', 'ada@x.io'],
    ])
  })

  it('tells the old address nothing if it stays the same', async () => {
    await verify(ada)
    const admin = await test.account({ roles: ['admin'] })
    await change('Ada@x.io')
    expect(await confirmed(await tokenTo(ada))).toEqual(ok)
    await admin.client.admin_account_email_set({ account_id: ada.id, email: 'Ada@x.io', verified: false })
    expect(await emailOf(ada)).toEqual(['Ada@x.io', false])
    expect((await messagesTo(test, ada)).map(({ what }) => what)).toEqual(['email_change'])
  })

  it('tells nobody at an address that was never verified', async () => {
    await change('ada@new.io')
    await confirm(await tokenTo(ada))
    expect((await messagesTo(test, ada)).map(({ what }) => what)).toEqual(['email_change'])
  })

  it('removes an address at once, and the links to it', async () => {
    await ada.client.account_email_verify_send()
    const token = await tokenTo(ada)
    expect(
      await scenario(test, () => change(null), {
        audit: [
          { event_type: 'account_update', target_account_id: ada.id, metadata: { change: 'email_cleared' } },
        ],
      }),
    ).toEqual({ ok: true, pending: false })
    expect(await emailOf(ada)).toEqual([null, false])
    expect(await confirmed(token)).toEqual(gone)
    expect(await scenario(test, () => change(null))).toEqual({ ok: true, pending: false })
  })

  it('again to another address, or to none, ends the link to the one before, which may be a stranger’s', async () => {
    await change('stranger@x.io')
    const mistyped = await tokenTo(ada)
    await change('ada@new.io')
    const first = await tokenTo(ada)
    expect(await confirmed(mistyped)).toEqual(gone)
    await change('ADA@new.io')
    expect(await confirmed(first)).toEqual(ok)
    expect(await confirmed(await tokenTo(ada))).toEqual(gone)
    for (const end of [
      () => change(null),
      // The e-mail is already removed here.
      () => change(null),
      () => operations.setEmail({ account_id: ada.id, email: 'ada@x.io' }, by),
    ]) {
      await change('stranger@x.io')
      await end()
      expect(await confirmed(await tokenTo(ada))).toEqual(gone)
    }
    expect(await emailOf(ada)).toEqual(['ada@x.io', false])
  })

  it('to another account’s address mails its owner, who alone learns that it is taken', async () => {
    expect(await change('BOB@x.io')).toEqual({ ok: true, pending: true })
    const token = await tokenTo(ada)
    await scenario(test, () => confirm(token))
    expect(await confirmed(token)).toEqual([409, 'email_taken'])
    await operations.setEmail({ account_id: bob.id, email: null }, by)
    expect(await confirmed(token)).toEqual(ok)
    expect(await emailOf(ada)).toEqual(['BOB@x.io', true])
  })

  it('ends with a new password', async () => {
    await change('ada@new.io')
    const token = await tokenTo(ada)
    await operations.setPassword({ account_id: ada.id, password: 'another long password' }, by)
    expect(await confirmed(token)).toEqual(gone)
  })
})

describe('POST /email_confirm', () => {
  it('answers alike whatever is wrong with the token', async () => {
    await ada.client.account_email_verify_send()
    const open = await tokenTo(ada)
    const deleted = await (async () => {
      await bob.client.account_email_verify_send()
      const token = await tokenTo(bob)
      await operations.deleteAccount({ account_id: bob.id }, by)
      return token
    })()
    const { link } = await operations.createResetLink({ account_id: ada.id }, by)
    const wrong = [
      deleted,
      link?.split('#ticket=')[1] as string,
      open.slice(0, -1),
      `${open}x`,
      open.toUpperCase(),
      '',
      'secret_svc_ticket_',
      '\u0001',
    ]
    const replies = await Promise.all(wrong.map(confirm))
    expect(new Set(replies.map(({ bare }) => bare)).size).toBe(1)
    expect(replies[0]).toMatchObject({ status: 404, json: { error: 'ticket_not_found' } })
    await app.db.run(sql`update account_ticket set expires_at = statement_timestamp() - interval '1 ms'`)
    expect((await confirm(open)).bare).toBe(replies[0]?.bare)
  })

  it('verifies no address but the one that it was mailed to', async () => {
    await ada.client.account_email_verify_send()
    const token = await tokenTo(ada)
    await operations.setEmail({ account_id: ada.id, email: 'other@x.io' }, by)
    expect(await confirmed(token)).toEqual(gone)
    await operations.setEmail({ account_id: ada.id, email: 'ada@x.io' }, by)
    expect(await confirmed(token)).toEqual(gone)
    expect(await emailOf(ada)).toEqual(['ada@x.io', false])
  })
})

describe('admin_account_email_set', () => {
  it('sets an address, verified if said so, and tells the old one', async () => {
    const admin = await test.account({ roles: ['admin'] })
    const set = (email: string | null, verified?: boolean) =>
      admin.client.admin_account_email_set({
        account_id: ada.id,
        email,
        ...(verified !== undefined && { verified }),
      })
    await verify(ada)
    const row = (change: string) => ({
      audit: [
        {
          event_type: 'account_update',
          ...{
            account_id: admin.id,
            actor_id: admin.actor_id,
            target_account_id: ada.id,
            metadata: { change },
          },
        },
      ],
    })
    expect(await scenario(test, () => set('ada@new.io'), row('email'))).toEqual({ ok: true, changed: true })
    expect(await emailOf(ada)).toEqual(['ada@new.io', false])
    expect(await scenario(test, () => set('ada@new.io'))).toEqual({ ok: true, changed: false })
    await scenario(test, () => set('ada@new.io', true), row('email_verified'))
    expect(await emailOf(ada)).toEqual(['ada@new.io', true])
    await scenario(test, () => set(null, true), row('email_cleared'))
    expect(await emailOf(ada)).toEqual([null, false])
    expect((await messagesTo(test, ada)).map(({ what, to }) => [what, to])).toEqual([
      ['email_changed', 'ada@x.io'],
      ['email_changed', 'ada@new.io'],
    ])
    await scenario(test, () => set('bob@x.io'), { reason: 'email_taken' })
  })

  it('refuses the address of another account at once, even while that account is changed', async () => {
    const admin = await test.account({ roles: ['admin'] })
    const other = await rival(test.databaseUrl)
    await other.begin('update account set updated_at = now() where id = $1', [bob.id])
    const set = admin.client.admin_account_email_set({ account_id: ada.id, email: 'BOB@x.io' })
    expect(await Promise.race([reasonOf(set), other.blocks(1)])).toBe('email_taken')
    await other.close()
  })

  it('ends a change to another address, also if the account already has the one that is set', async () => {
    const admin = await test.account({ roles: ['admin'] })
    const account_id = ada.id
    const email = 'ada@x.io'
    for (const set of [
      () => admin.client.admin_account_email_set({ account_id, email }),
      () => operations.setEmail({ account_id, email }, by),
    ]) {
      await ada.client.account_email_change({ email: 'stranger@x.io' })
      expect(await set()).toMatchObject({ changed: false })
      expect(await confirmed(await tokenTo(ada))).toEqual(gone)
      expect(await emailOf(ada)).toEqual([email, false])
    }
  })
})

describe('an admin', () => {
  const nobody = '11111111-1111-1111-1111-111111111111'
  const methods = {
    admin_account_email_set: { email: 'new@x.io' },
    admin_account_username_set: { username: 'another' },
  } as const

  it.each(Object.entries(methods))('%s: takes over no admin and no keeper', async (method, change) => {
    const admin = await test.account({ roles: ['admin'] })
    const act = (account_id: string) => () =>
      test.service.call(method, { account_id, ...change }, { headers: { cookie: admin.cookie } })
    const refused = (
      reason: string,
      target_account_id: string | null,
      metadata: Record<string, unknown>,
    ) => ({
      reason,
      audit: [{ event_type: 'account_update', outcome: 'failure' as const, target_account_id, metadata }],
    })
    const privileged = async (roles: string[]) => (await test.account({ roles })).id
    for (const id of [await privileged(['admin']), await privileged(['keeper']), admin.id])
      await scenario(test, act(id), refused('privileged_target', id, { reason: 'privileged_target' }))
    const attempted = { reason: 'account_not_found', attempted_account_id: nobody }
    await scenario(test, act(nobody), refused('account_not_found', null, attempted))
    expect(await act(bob.id)()).toEqual({ ok: true, changed: true })
  })

  it('is refused with a token, which is no fresh proof; so is anyone else', async () => {
    const admin = await test.account({ roles: ['admin'] })
    const { token } = (await admin.client.account_token_create({
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })) as { token: string }
    for (const [method, change] of Object.entries(methods)) {
      const act = (headers: Record<string, string>) =>
        test.service.call(method, { account_id: bob.id, ...change }, { headers })
      await expect(act({ authorization: `Bearer ${token}` })).rejects.toMatchObject({
        data: { reason: 'credential_type_required' },
      })
      await expect(act({ cookie: ada.cookie })).rejects.toMatchObject({
        data: { reason: 'insufficient_permissions' },
      })
    }
  })
})

it('without a transport none of this exists but what admins set', async () => {
  const { client } = await silent.sessions.create(ada.id)
  await expect(client.account_email_change({ email: null })).rejects.toMatchObject({
    reason: 'method_not_found',
  })
  await expect(client.account_email_verify_send()).rejects.toMatchObject({ reason: 'method_not_found' })
  expect((await send(silent, 'POST /email_confirm', { body: { token: 'x' } })).status).toBe(404)
})
