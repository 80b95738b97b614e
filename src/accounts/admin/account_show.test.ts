import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'

const test = await serviceForFile()

const by = { via: 'cli' }
const password = 'a long password'
const ops = () => test.service.operations

describe('findAccount', () => {
  it.each(['  USER@Example.COM ', 'Finder', 'id', 'ID'])('finds by %j', async (text) => {
    await ops()
      .createAccount({ username: 'finder', email: 'user@example.com', password }, by)
      .catch(() => {})
    const { account } = await ops().findAccount({ ref: 'finder' })
    const ref = text.toLowerCase() === 'id' ? (text === 'ID' ? account.id.toUpperCase() : account.id) : text
    expect((await ops().findAccount({ ref })).account.username).toBe('finder')
  })

  it('takes an id as an id, even if another account is named like it', async () => {
    // Such a name is possible: usernames begin with a letter, as some ids do.
    const id = 'abcdef00-0000-4000-8000-00000000000a'
    await test.account({ username: id })
    expect((await ops().findAccount({ ref: id })).account.username).toBe(id)
    await test.service.app.db.run(sql`
      insert into account (id, username, password_hash) values (${id}::uuid, 'the-one', 'x')`)
    expect((await ops().findAccount({ ref: id })).account.username).toBe('the-one')
  })

  it('shows deleted accounts too', async () => {
    const gone = await test.account()
    await ops().deleteAccount({ account_id: gone.id }, by)
    expect((await ops().findAccount({ ref: gone.username })).account.deleted_at).not.toBeNull()
    const { accounts } = await ops().listAccounts({ limit: 200 })
    expect(accounts.some(({ account }) => account.id === gone.id)).toBe(false)
    const all = await ops().listAccounts({ limit: 200, include_deleted: true })
    expect(all.accounts.some(({ account }) => account.id === gone.id)).toBe(true)
  })
})

it('listAccounts walks every account once, page by page', async () => {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<ReturnType<typeof ops>['listAccounts']>> = await ops().listAccounts({
      limit: 2,
      cursor,
    })
    ids.push(...page.accounts.map(({ account }) => account.id))
    cursor = page.next_cursor
  } while (cursor !== null)
  const live = await test.service.app.db.rows<{ id: string }>(sql`
    select id from account where deleted_at is null order by created_at, id`)
  expect(ids).toEqual(live.map(({ id }) => id))
})
