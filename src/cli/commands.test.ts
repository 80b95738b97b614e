import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type Said, shell } from '../../test/helpers/shell.ts'
import { createClient } from '../client/client.ts'
import type { Operation } from '../core/operation.ts'
import { sql } from '../db/db.ts'
import { operations } from '../operations.ts'
import { scenario, testService } from '../testing/index.ts'

const roles = [{ name: 'teacher', grant_paths: ['admin'] }]
const scope_kinds = [{ name: 'classroom' }]
const room = '22222222-2222-2222-2222-222222222222'
const nobody = '11111111-1111-1111-1111-111111111111'
const password = 'a long password'

const cwd = await mkdtemp(join(tmpdir(), 'ck-cmd-'))
const weak = { env: 'development', argon2: '8,1,1' }
await writeFile(join(cwd, 'cellkeep.config.json'), JSON.stringify({ ...weak, roles, scope_kinds }))
const test = await testService({ roles, scope_kinds })
const run = shell({ CELLKEEP_DATABASE_URL: test.databaseUrl }, cwd)
afterAll(async () => {
  await test.close()
  await rm(cwd, { recursive: true })
})

const declared = Object.values(operations as unknown as Record<string, Operation>)
  .flatMap(({ command }) => (command ? [command.name] : []))
  .sort((a, b) => b.length - a.length)
const succeeded = new Set<string | undefined>()
const cellkeep = async (args: readonly string[], input?: string): Promise<Said> => {
  const said = await run(args, input)
  // The longest name: `account factors --clear` is not `account factors`.
  if (said.code === 0)
    succeeded.add(declared.find((name) => name.split(' ').every((word) => args.includes(word))))
  return said
}
/** Runs a command that must succeed; resolves to its JSON lines. */
const json = async (args: string[], input?: string): Promise<Record<string, unknown>[]> => {
  const { code, stdout, stderr } = await cellkeep([...args, '--json'], input)
  expect([code, stderr]).toEqual([0, ''])
  return stdout === ''
    ? []
    : stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
}
/** Runs a command that must be refused, with a sentence for people; resolves to the reason of its JSON. */
const refused = async (args: string[], input?: string): Promise<string> => {
  const { code, stdout, stderr } = await cellkeep(args, input)
  expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^[A-Z][^_]*[.:]\n/)])
  const said = await cellkeep([...args, '--json'], input)
  expect([said.code, said.stdout]).toEqual([1, ''])
  return JSON.parse(said.stderr).reason
}
const one = async (args: string[], input?: string): Promise<Record<string, unknown>> =>
  (await json(args, input))[0] as Record<string, unknown>
/** The expected audit rows; an account that loses a role is notified. */
const rows = (...types: string[]) => ({
  audit: types.map((event_type) => ({ event_type, ip: null })),
  notify: types.filter((type) => type === 'role_grant_revoke').map((method) => ({ method })),
})

describe('each command that changes something leaves exactly its row', () => {
  const via = { metadata: { via: 'cli' } }

  // Before there is an account.
  it('bootstrap-token', async () => {
    const reset = () => one(['bootstrap-token', 'reset'])
    expect(await scenario(test, reset)).toEqual({ path: join(cwd, '.cellkeep', 'bootstrap_token') })
  })

  it('account', async () => {
    const create = () =>
      one(['account', 'create', '--username', 'Grace', '--email', 'g@x.io'], `${password}\n`)
    const made = await scenario(test, create, { audit: [{ event_type: 'account_create', ...via }] })
    const { id } = made.account as { id: string }
    expect(made).toMatchObject({ account: { username: 'grace', email: 'g@x.io' }, role_grant_ids: [] })
    await test.client().account.login({ username: 'grace', password })

    const change = (words: string[], ...types: string[]) =>
      scenario(test, () => one(['account', ...words]), rows(...types))
    await scenario(
      test,
      () => one(['account', 'set-password', 'g@x.io'], 'another long one'),
      rows('password_change'),
    )
    await test.client().account.login({ username: 'grace', password: 'another long one' })
    expect(await change(['verify-email', 'grace'], 'account_update')).toMatchObject({ changed: true })
    for (const name of ['hopper', 'grace'])
      expect(await change(['set-username', id, name], 'account_update')).toMatchObject({ username: name })
    expect(await change(['factors', id])).toMatchObject({ password: true, second_factor: false })
    expect(await change(['factors', id, '--clear'])).toMatchObject({ totp: false, passkeys: 0 })
    await change(['set-email', 'grace', 'new@x.io'], 'account_update')
    await change(['set-email', id, '--none'], 'account_update')
    expect(await one(['account', 'show', id])).toMatchObject({ account: { email: null } })
    await change(['delete', 'grace'], 'account_delete', 'actor_delete')
    expect((await json(['account', 'list'])).some((row) => JSON.stringify(row).includes(id))).toBe(false)
    expect(
      (await json(['account', 'list', '--deleted'])).some((row) => JSON.stringify(row).includes(id)),
    ).toBe(true)
    await change(['undelete', 'grace'], 'account_undelete', 'actor_undelete')
    expect(await refused(['account', 'purge', 'grace'])).toBe('purge_not_confirmed')
    expect((await cellkeep(['account', 'purge', 'grace'])).stderr).toMatch(/ {2}To do it, add --confirm/)
    await change(['purge', 'grace', '--confirm'], 'account_purge', 'actor_purge')
  })

  it('actor', async () => {
    const ada = await test.account()
    const run = (words: string[], type: string) => scenario(test, () => one(['actor', ...words]), rows(type))
    const made = (await run(['add', ada.username, '--name', 'At work'], 'actor_create')) as { id: string }
    await run(['rename', made.id, '--name', 'Elsewhere'], 'actor_rename')
    expect(await json(['actor', 'list', ada.id])).toMatchObject([{}, { name: 'Elsewhere', deleted_at: null }])
    expect(await run(['rename', made.id, '--name', ''], 'actor_rename')).toMatchObject({ name: '' })
    await run(['remove', made.id], 'actor_delete')
    expect(await refused(['actor', 'remove', ada.actor_id])).toBe('last_actor')
  })

  it('token create', async () => {
    const ada = await test.account()
    const create = ['token', 'create', ada.username, '--name', 'Nightly']
    const run = async (...words: string[]) => {
      const audit = [{ event_type: 'token_create', account_id: null, target_account_id: ada.id }]
      const made = await scenario(test, () => one([...create, ...words]), { audit })
      const row = await test.service.app.db.first(sql`
        select metadata->>'via' as via from audit_entries() where metadata->>'token_id' = ${String(made.id)}`)
      expect(row).toEqual({ via: 'cli' })
      return made
    }
    const made = await run('--scope', 'account_verify,cell_get', '--days', '30')
    expect(made).toMatchObject({
      account_id: ada.id,
      name: 'Nightly',
      scope: 'methods:account_verify,cell_get',
    })
    const days = (Date.parse(String(made.expires_at)) - Date.now()) / 86_400_000
    expect(Math.round(days)).toBe(30)
    const client = createClient({
      url: test.url,
      headers: { authorization: `Bearer ${made.token}` },
    })
    expect(await client.account_verify()).toMatchObject({ id: ada.id })
    await expect(client.cell_list()).rejects.toMatchObject({ reason: 'token_scope_required' })
    expect(await run('--scope', 'full', '--eternal')).toMatchObject({ expires_at: null, scope: 'full' })
    const { stdout } = await cellkeep([...create, '--scope', 'read_only', '--days', '1'])
    expect(stdout).toMatch(/^secret {3}secret_svc_token_\S+\ntoken {4}tok_/)
    expect(JSON.stringify(await json(['token', 'list', ada.username]))).not.toContain('secret_svc')

    expect(await refused([...create, '--scope', 'nothing', '--days', '1'])).toBe('unknown_method')
    expect(await refused([...create, '--scope', 'full', '--days', '0'])).toBe('invalid_params')
    const wrong = async (...words: string[]) => (await cellkeep([...create, ...words])).stderr
    expect(await wrong('--scope', 'full', '--days', '0')).toContain('\n  --days 0: At least 1.\n')
    expect(await wrong('--scope', 'cell_get,cel_get', '--days', '1')).toContain(
      '\n  --scope cel_get: There is no',
    )
    await one(['account', 'delete', ada.username])
    expect(await refused([...create, '--scope', 'full', '--days', '1'])).toBe('account_not_found')
    for (const words of [
      ['--days', '1'],
      ['--scope', 'full'],
      ['--scope', 'full', '--days', '1', '--eternal'],
    ])
      expect((await cellkeep([...create, ...words])).code).toBe(2)
  })

  it('session and token', async () => {
    const ada = await test.account()
    const { id: token_id } = await ada.client.account_token_create({
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })
    const [session] = await json(['session', 'list', ada.username])
    expect(await json(['token', 'list', ada.username])).toMatchObject([{ id: token_id, scope: 'full' }])
    const run = (words: string[], ...types: string[]) => scenario(test, () => one(words), rows(...types))
    expect(await run(['session', 'revoke', String(session?.id)], 'session_revoke')).toMatchObject({
      revoked: true,
    })
    expect(await run(['session', 'revoke', String(session?.id)])).toMatchObject({ revoked: false })
    expect(await run(['token', 'revoke', token_id], 'token_revoke')).toMatchObject({ revoked: true })
    await one(['token', 'create', ada.username, '--name', 'Nightly', '--scope', 'full', '--eternal'])
    expect(await run(['token', 'revoke-all', ada.username], 'token_revoke_all')).toMatchObject({ count: 1 })
    expect(await run(['session', 'revoke-all', ada.username])).toMatchObject({ count: 0 })
    await one(['session', 'revoke-all', '--everyone'])
    const bob = await test.account()
    expect(await run(['session', 'revoke-all', '--everyone'], 'session_revoke_all')).toEqual({
      count: 1,
      accounts: 1,
    })
    await expect(bob.client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
    expect(await run(['token', 'revoke-all', '--everyone'])).toEqual({ count: 0, accounts: 0 })
  })

  it('role', async () => {
    const ada = await test.account()
    const run = (words: string[], ...types: string[]) =>
      scenario(test, () => one(['role', ...words]), rows(...types))
    const assign = ['assign', ada.username, 'teacher']
    const at = ['--scope-kind', 'classroom', '--scope-id', room.toUpperCase()]
    expect(await run([...assign, ...at], 'role_grant_create')).toMatchObject({ created: true })
    expect(await run([...assign, ...at])).toMatchObject({ created: false })
    expect(await run([...assign, '--expires-at', '2099-01-01T00:00:00Z'], 'role_grant_create')).toMatchObject(
      {
        expires_at: '2099-01-01T00:00:00.000Z',
      },
    )
    await run(['revoke', ada.username, 'teacher'], 'role_grant_revoke')
    const shown = await one(['account', 'show', ada.id])
    expect(shown.role_grants).toMatchObject([{ scope_id: room }])
    await run(['revoke', ada.username, 'teacher', ...at], 'role_grant_revoke')
    expect(await refused(['role', 'revoke', ada.username, 'teacher'])).toBe('role_grant_not_found')
  })

  it('keeper', async () => {
    const [ada, bob] = await Promise.all([test.account({ roles: ['keeper'] }), test.account()])
    const move = () => one(['keeper', 'transfer', bob.username])
    const moved = await scenario(test, move, rows('role_grant_create', 'role_grant_revoke'))
    expect(moved).toMatchObject({ actor_id: bob.actor_id, revoked: [{ actor_id: ada.actor_id }] })
    for (const word of ['assign', 'revoke'])
      expect(await refused(['role', word, bob.username, 'keeper'])).toBe('role_grant_path_not_allowed')
  })

  it('invite and settings', async () => {
    const run = (words: string[], ...types: string[]) => scenario(test, () => one(words), rows(...types))
    const made = await run(['invite', 'create', '--email', 'eve@x.io'], 'invite_create')
    expect(await json(['invite', 'list'])).toMatchObject([
      { id: made.id, email: 'eve@x.io', claimed_by: null },
    ])
    await run(['invite', 'delete', String(made.id)], 'invite_delete')
    expect(await json(['invite', 'list'])).toEqual([])
    const open = ['settings', 'set', 'open_signup', 'true']
    expect(await run(open, 'app_settings_update')).toMatchObject({ open_signup: true })
    expect(await run(open)).toMatchObject({ open_signup: true })
    expect(await one(['settings', 'get'])).toMatchObject({ open_signup: true, updated_by: null })
  })
})

describe('an account with several actors', () => {
  it('has to be told which one a role is for, and lists them', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'Second\u202e')
    for (const command of [
      ['role', 'assign', ada.username, 'teacher'],
      ['role', 'revoke', ada.username, 'teacher'],
      ['keeper', 'transfer', ada.username],
    ]) {
      const { code, stderr } = await cellkeep(command)
      expect(code).toBe(1)
      expect(stderr.split('\n')).toEqual([
        'The account has several actors. Choose one:',
        `  --actor ${ada.actor_id}  ${ada.username}`,
        `  --actor ${second}  Second\\u202e`,
        '',
      ])
    }
    expect(await one(['role', 'assign', ada.username, 'teacher', '--actor', second])).toMatchObject({
      actor_id: second,
    })
    const assign = ['role', 'assign', ada.username, 'teacher', '--actor', nobody]
    expect(await refused(assign)).toBe('actor_not_found')
  })

  it('still shows the roles of a removed actor, and loses them by its id', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'Second')
    await one(['role', 'assign', ada.username, 'teacher', '--actor', second])
    await one(['actor', 'remove', second])
    const listed = await json(['actor', 'list', ada.username])
    expect(listed[1]).toMatchObject({ id: second, role_grants: [{ role: 'teacher' }] })
    const revoke = ['role', 'revoke', ada.username, 'teacher', '--actor', second]
    const revoked = await scenario(test, () => one(revoke), {
      audit: [{ event_type: 'role_grant_revoke', target_actor_id: second, target_account_id: ada.id }],
      notify: [{ method: 'role_grant_revoke', account_id: ada.id }],
    })
    expect(revoked).toMatchObject({ actor_id: second, revoked: true })
    expect(await refused(revoke)).toBe('role_grant_not_found')
    const other = await test.account()
    expect(await refused([...revoke.slice(0, -1), other.actor_id])).toBe('actor_not_found')
  })
})

describe('what is said', () => {
  it('tables have columns, names cannot control the terminal, and pages keep the column widths', async () => {
    const ada = await test.account()
    await test.service.app.db.run(
      sql`update actor set name = 'evil' || chr(27) || '[2J' where id = ${ada.actor_id}::uuid`,
    )
    const { stdout } = await cellkeep(['actor', 'list', ada.username])
    const [head = '', row = ''] = stdout.split('\n')
    expect(row.indexOf('evil\\u001b[2J')).toBe(head.indexOf('NAME'))
    await test.service.app.db.run(sql`
      insert into account (username, password_hash) select 'page' || n, 'x' from generate_series(1, 250) n`)
    const list = (await cellkeep(['account', 'list'])).stdout.trimEnd().split('\n')
    const known = await test.service.app.db.rows(sql`select 1 from account where deleted_at is null`)
    expect(list).toHaveLength(known.length + 1)
    expect(list.every((line) => line.slice(36, 38) === '  ' || line.startsWith('ACCOUNT'))).toBe(true)
    expect(await json(['account', 'list'])).toHaveLength(known.length)
  })

  it('refusals say what they mean, what to do, and which word breaks which rule', async () => {
    const told = async (args: string[], input?: string) => {
      const { code, stdout, stderr } = await cellkeep(args, input)
      expect([code, stdout]).toEqual([1, ''])
      return stderr
    }
    expect(await told(['account', 'show', 'not-there'])).toBe(
      'There is no such account, or it is not in the state (live, deleted) that this needs.\n' +
        '  `cellkeep account list --deleted` lists all accounts.\n',
    )
    expect(await told(['account', 'create', '--username', '1x'], 'short')).toBe(
      [
        'The arguments are not valid:',
        '  --username: At least 3 characters.',
        '  password: At least 12 characters.',
        '',
      ].join('\n'),
    )
    expect(await told(['invite', 'create'])).toMatch(/\n {2}Give an email, a username or both\.\n/)
    expect(await refused(['invite', 'create'])).toBe('invalid_params')
    const at = ['--scope-kind', 'attic', '--scope-id', crypto.randomUUID()]
    expect(await told(['role', 'assign', (await test.account()).username, 'admin', ...at])).toBe(
      'The arguments are not valid:\n  --scope-kind: This kind of scope is not declared.\n' +
        '  Kinds of scope are declared as `scope_kinds` in the config file.\n',
    )
    expect(await told(['role', 'assign', (await test.account()).username, 'amdin'])).toMatch(
      /\n {2}ROLE: There is no such role; did you mean admin\?\n/,
    )
    const json = await cellkeep(['account', 'create', '--username', '1x', '--json'], password)
    expect(JSON.parse(json.stderr)).toMatchObject({ issues: [{ path: ['username'] }] })
  })

  it('an empty password input is wrong usage', async () => {
    const { code, stderr } = await cellkeep(['account', 'create', '--username', 'somebody'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^Standard input is empty/)
  })

  it('a count of one is in the singular', async () => {
    const ada = await test.account()
    const { stdout } = await cellkeep(['session', 'revoke-all', ada.username])
    expect(stdout).toBe('1 session ended.\n')
    const again = await cellkeep(['session', 'revoke-all', ada.username])
    expect(again.stdout).toBe('0 sessions ended.\n')
  })

  it('a misspelled word or option suggests the right one, and nothing was looked up', async () => {
    const wrong = async (...args: string[]) => (await cellkeep(args)).stderr
    expect(await wrong('acount', 'show')).toMatch(/"acount"; did you mean account\?/)
    expect(await wrong('import', 'users.jsonl')).toMatch(/"import"; did you mean account import\?/)
    expect(await wrong('help', 'import')).toMatch(/"import"; did you mean account import\?/)
    expect(await wrong('list')).not.toMatch(/did you mean/)
    expect(await wrong('account', 'shwo')).toMatch(/"account shwo"; did you mean show\?/)
    expect(await wrong('account', 'list', '--deletd')).toMatch(
      /Unknown option --deletd; did you mean --deleted\?/,
    )
    expect(await wrong('help', 'account', 'lst')).toMatch(/did you mean list\?/)
    expect(await wrong('audit', 'export', '--since-seq', 'x')).toMatch(/--since-seq takes a whole number/)
    expect(await wrong('account', 'list', '--query')).toMatch(/^--query needs a value\. /)
    expect(await wrong('account', 'list', '--query', '--json')).toContain('--query needs a value. ')
    expect(await wrong('account', 'set-email', 'ada')).toMatch(/^Give one of: ADDRESS \| --none\.\n/)
    expect(await wrong('settings', 'set', 'signup', 'true')).toMatch(
      /^Write open_signup instead of "signup"\./,
    )
  })
})

it('an export tells the row that the next one goes on from, even if there is no new one', async () => {
  await test.account()
  const lastOf = async (since: string, ...more: string[]): Promise<unknown> =>
    JSON.parse((await cellkeep(['audit', 'export', '--since-seq', since, ...more])).stderr).last_seq
  const last = String(await lastOf('0'))
  expect(Number(last)).toBeGreaterThan(0)
  expect(await lastOf(last)).toBe(Number(last))
  expect(await lastOf('0', '--event-type', 'bootstrap')).toBe(0)
})

it('cleanup says what it did', async () => {
  await cellkeep(['cleanup'])
  await test.account()
  await test.service.app.db.run(sql`update auth_session set expires_at = date_trunc('milliseconds', now())`)
  const { stdout } = await cellkeep(['cleanup'])
  expect(stdout).toMatch(
    /^Removed \d+ sessions?, 0 tokens, 0 limiter charges, 0 sign-in addresses, 0 links, 0 messages, 0 deleted cells and 0 audit rows; 0 offers expired\.\n$/,
  )
  expect(await one(['cleanup'])).toEqual({
    ran: true,
    removed_tickets: 0,
    removed_messages: 0,
    resealed_secrets: 0,
    expired_sessions: 0,
    expired_tokens: 0,
    expired_charges: 0,
    expired_addresses: 0,
    removed_cells: 0,
    removed_audit_rows: 0,
    expired_offers: 0,
  })
})

/** Tests of commands that need more than this service, such as messages. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  'src/delivery/commands.test.ts': [
    ...['account reset-link', 'account secure', 'ticket list', 'ticket revoke', 'invite send'],
    ...['mail list', 'mail show', 'mail test', 'keys reseal'],
  ],
  'src/cli/unlock.test.ts': ['account unlock'],
  'src/cli/nodes.test.ts': ['nodes'],
}

it('every command of an operation is run above, or elsewhere', async () => {
  const others = Object.values(elsewhere).flat()
  expect(declared.filter((name) => !succeeded.has(name)).sort()).toEqual(others.sort())
  for (const [file, names] of Object.entries(elsewhere)) {
    const text = await readFile(file, 'utf8')
    expect(names.filter((name) => !text.includes(name))).toEqual([])
  }
})
