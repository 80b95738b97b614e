import { afterAll, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { rival } from '../../test/helpers/race.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestService, testService } from '../testing/index.ts'

const limits = {
  limit_signup_ip: 'off',
  limit_signup_username: 'off',
  limit_admin_write: 'off',
  max_sessions: 'off',
} as const
const test = await testService(limits)
/** A second node on the same database. */
const node = await testService({ ...limits, database_url: test.databaseUrl })
const other = await rival(test.databaseUrl)
const admin = await test.account({ username: 'admin', roles: ['admin'] })
afterAll(async () => {
  await other.close()
  await node.close()
  await test.close()
})

const body = (username: string, email?: string) => ({ username, email, password: 'a long password' })
const signUp = async (on: TestService, username: string, email?: string) => {
  const { status, json } = await send(on, 'POST /signup', { body: body(username, email) })
  return status === 200 ? 'signed up' : json?.error
}
const create = async (input: Parameters<typeof admin.client.invite_create>[0]) => {
  const outcome = await admin.client.try.invite_create(input)
  return outcome.ok ? 'created' : outcome.error.reason
}
const remove = async (invite_id: string) => {
  const outcome = await admin.client.try.invite_delete({ invite_id })
  return outcome.ok ? 'deleted' : outcome.error.reason
}
const inviteId = async (input: Parameters<typeof admin.client.invite_create>[0]) =>
  (await admin.client.invite_create(input)).invite.id
const count = async (...query: Parameters<typeof sql>) =>
  (await test.service.app.db.first<{ count: number }>(sql(...query)))?.count
/** Runs the race for ten names at a time, `rounds` times. */
async function rounds(times: number, race: (name: string) => Promise<void>): Promise<void> {
  for (let round = 0; round < times; round++)
    await Promise.all(Array.from({ length: 10 }, (_, n) => race(`r${round}_${n}`)))
}

describe('signups that race for one invite', () => {
  it('of one username: one gets the account, the other 403, 60 times on two nodes', async () => {
    await rounds(6, async (name) => {
      const id = await inviteId({ username: `u${name}` })
      const outcomes = await Promise.all([signUp(test, `u${name}`), signUp(node, `u${name}`)])
      expect(outcomes.sort()).toEqual(['no_matching_invite', 'signed up'])
      expect(
        await count`select count(*)::int from audit_entries() where metadata ->> 'invite_id' = ${id}
        and event_type = 'signup'`,
      ).toBe(1)
    })
  })

  it('of one e-mail with different names: one gets the account, the other 403, 60 times', async () => {
    await rounds(6, async (name) => {
      const email = `${name}@one.example`
      await inviteId({ email })
      const names = [`a${name}`, `b${name}`]
      const outcomes = await Promise.all(
        names.map((username, at) => signUp(at === 0 ? test : node, username, email)),
      )
      expect(outcomes.sort()).toEqual(['no_matching_invite', 'signed up'])
      expect(await count`select count(*)::int from account where username = any(${names})`).toBe(1)
    })
  })

  it.each([
    ['claimed', 'update invite set claimed_at = now() where email = $1'],
    ['deleted', 'delete from invite where email = $1'],
  ])('one whose invite is %s while it waits takes the next one that matches', async (what, statement) => {
    const [email, username] = [`${what}@next.example`, `next_${what}`]
    await inviteId({ email })
    const next = await inviteId({ username })
    await other.begin(statement, [email])
    const late = signUp(test, username, email)
    await other.blocks(1)
    await other.commit()
    expect(await late).toBe('signed up')
    expect(await count`select count(*)::int from invite where id = ${next} and claimed_at is not null`).toBe(
      1,
    )
  })
})

it('an invite that expires while a signup waits for it admits nobody', async () => {
  const expires_at = new Date(Date.now() + 1500).toISOString()
  // Not by a call, which would be refused if its end had passed before it arrived.
  await test.service.app.db.run(
    sql`insert into invite (username, expires_at) values ('too_late', ${expires_at})`,
  )
  await other.begin('select from invite where username = $1 for update', ['too_late'])
  const late = signUp(test, 'too_late')
  // On a busy machine it may expire before the signup waits.
  await Promise.race([late, other.blocks(1)])
  await other.query('select pg_sleep_until($1)', [expires_at])
  await other.commit()
  expect(await late).toBe('no_matching_invite')
  expect(await count`select count(*)::int from account where username = 'too_late'`).toBe(0)
})

describe('invite_delete that races a claim', () => {
  it('leaves exactly one winner, 60 times', async () => {
    await rounds(6, async (name) => {
      const id = await inviteId({ username: `d${name}` })
      const outcome = (await Promise.all([remove(id), signUp(node, `d${name}`)])).join(', ')
      expect(['deleted, no_matching_invite', 'invite_not_found, signed up']).toContain(outcome)
      const isClaimed = outcome.endsWith('signed up')
      expect([
        await count`select count(*)::int from invite where id = ${id} and claimed_at is not null`,
        await count`select count(*)::int from account where username = ${`d${name}`}`,
      ]).toEqual(isClaimed ? [1, 1] : [0, 0])
    })
  })

  it('waits for the claim, and then finds the invite claimed', async () => {
    const id = await inviteId({ username: 'first_claim' })
    await other.begin('update invite set claimed_at = now() where id = $1', [id])
    const late = remove(id)
    await other.blocks(1)
    await other.commit()
    expect(await late).toBe('invite_not_found')
  })

  it('is waited for by the signup, which then finds no invite', async () => {
    const id = await inviteId({ username: 'first_delete' })
    await other.begin('delete from invite where id = $1', [id])
    const late = signUp(test, 'first_delete')
    await other.blocks(1)
    await other.commit()
    expect(await late).toBe('no_matching_invite')
  })

  it('against another deletion: one succeeds, and one success row stands', async () => {
    const id = await inviteId({ username: 'deleted_twice' })
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => remove(id)))
    expect(outcomes.sort()).toEqual(['deleted', ...Array(9).fill('invite_not_found')])
    expect(
      await count`select count(*)::int from audit_entries()
      where event_type = 'invite_delete' and outcome = 'success' and metadata ->> 'invite_id' = ${id}`,
    ).toBe(1)
  })
})

describe('invite_create', () => {
  it('ten times the same at once: one is made, nine are duplicates, 20 times', async () => {
    for (let round = 0; round < 20; round++) {
      const input = { username: `ten${round}`, email: `Ten${round}@x.example` }
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => create(input)))
      expect(outcomes.sort()).toEqual(['created', ...Array(9).fill('invite_duplicate')])
    }
  })

  it('ten times at once over expired invites in its way: one is made, and they are gone', async () => {
    for (let round = 0; round < 20; round++) {
      const [username, email] = [`old${round}`, `old${round}@x.example`]
      await test.service.app.db.run(sql`
        insert into invite (username, email, email_key, expires_at) values
          (${username}, null, null, now()), (null, ${email}, ${email}, now())`)
      // Every other invite asks for both names, so that calls meet the expired pair from both ends.
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          create(n % 2 === 0 ? { username, email } : { username: `${username}_${n}`, email }),
        ),
      )
      expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome === 'invite_duplicate')).toHaveLength(9)
      expect(
        await count`select count(*)::int from invite where email = ${email} and expires_at is not null`,
      ).toBe(0)
    }
  })

  it('is refused if its end passes while it waits for the expired invite in its way', async () => {
    const username = 'passing'
    await test.service.app.db.run(sql`insert into invite (username, expires_at) values (${username}, now())`)
    await other.begin('select from invite where username = $1 for update', [username])
    const expires_at = new Date(Date.now() + 1000).toISOString()
    const late = create({ username, expires_at })
    // On a busy machine its end may pass before it waits.
    await Promise.race([late, other.blocks(1)])
    await other.query('select pg_sleep_until($1)', [expires_at])
    await other.commit()
    expect(await late).toBe('invalid_params')
    expect(await count`select count(*)::int from invite where expires_at = ${expires_at}`).toBe(0)
  })

  it('waits for a signup that claims the invite in its way, and then names the account', async () => {
    const id = await inviteId({ username: 'becoming', email: 'becoming@x.example' })
    for (const [input, reason] of [
      [{ username: 'becoming' }, 'invite_account_exists_username'],
      [{ email: 'Becoming@x.example' }, 'invite_account_exists_email'],
    ] as const) {
      await other.begin(
        `insert into account (username, email, email_key, password_hash)
         values ('becoming', 'becoming@x.example', 'becoming@x.example', 'x')`,
      )
      await other.query(
        `update invite set claimed_at = now(),
           claimed_by = (select id from account where username = 'becoming') where id = $1`,
        [id],
      )
      const audit = [{ event_type: 'invite_create', outcome: 'failure' as const, metadata: { reason } }]
      const late = scenario(test, () => admin.client.invite_create(input), { reason, audit })
      await other.blocks(1)
      await other.commit()
      await late
      await other.query(`update invite set claimed_at = null, claimed_by = null where id = $1`, [id])
      await other.query(`delete from account where username = 'becoming'`)
    }
  })

  it('against a signup that claims: nobody gets an account and leaves its name open, 60 times', async () => {
    await rounds(6, async (name) => {
      const username = `c${name}`
      await inviteId({ username })
      const [made, entered] = await Promise.all([create({ username }), signUp(node, username)])
      expect(entered).toBe('signed up')
      expect(['invite_duplicate', 'invite_account_exists_username']).toContain(made)
    })
  })
})
