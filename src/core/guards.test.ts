import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { call, dataOf, type Reply, reasonOf, rpc, send } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type Who, who } from '../../test/helpers/who.ts'
import type { Caller } from '../auth/caller.ts'
import type { TokenScope } from '../auth/identity.ts'
import { sql } from '../db/db.ts'
import { ServiceError } from '../errors.ts'
import type { TestAccount } from '../testing/index.ts'
import { guardCredential } from './guards.ts'
import type { AuthSpec } from './method.ts'

const actions = {
  grain: who({ account: 'required', actor: 'none' }),
  acts: who({ account: 'required', actor: 'required' }),
  acts_if: who({ account: 'required', actor: 'optional' }),
  edits: who({ account: 'required', actor: 'required', roles: ['chief', 'editor'] }),
  by_token: who({
    account: 'required',
    actor: 'required',
    roles: ['editor'],
    credential_types: ['api_token', 'daemon_token'],
  }),
  open: who({ account: 'none', actor: 'none' }),
}

/** The account that is deleted while its `cell_create` runs. */
let vanishing: string | undefined
const test = await serviceForFile({
  actions,
  roles: [
    { name: 'editor', grant_paths: ['admin'] },
    { name: 'chief', grant_paths: ['admin'] },
  ],
  scope_kinds: [{ name: 'shelf' }],
  limit_cell_create: '1/900',
  hooks: {
    authorizeCreate: async ({ account_id }: { account_id: string }) => {
      if (account_id === vanishing) await deleteAccount(account_id)
      return true
    },
  },
})
const one = await test.account()
const two = await test.account()
await test.actor(two.id, 'second')

const ask = (method: string, params?: unknown, account?: TestAccount): Promise<Reply> =>
  rpc(test.url, call(method, params), account ? { cookie: account.cookie } : {})
const result = ({ json }: Reply) => (json as { result?: z.output<typeof Who> }).result
const deleteAccount = (id: string) => run(sql`delete from account where id = ${id}`)
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)

const badParams = [{ n: 'x' }, { x: 1 }, { acting: 'x' }, { acting: null }, { '\0': 1 }]

describe('the order', () => {
  it('an unknown method is 404 and a known one 401, whatever the params', async () => {
    for (const params of [undefined, {}, ...badParams]) {
      expect((await ask('nothing', params)).status).toBe(404)
      for (const method of ['grain', 'acts', 'acts_if', 'edits', 'by_token']) {
        const reply = await ask(method, params)
        expect([reply.status, dataOf(reply)]).toEqual([401, { reason: 'authentication_required' }])
      }
    }
    const get = await send(test.url, { path: '/api/rpc?method=acts&id=1&params=[' })
    expect(get.status).toBe(401)
  })

  it('the type of the credential comes before the actor, the role and the input', async () => {
    for (const account of [one, two])
      for (const params of [undefined, ...badParams]) {
        const reply = await ask('by_token', params, account)
        expect([reply.status, dataOf(reply)]).toEqual([
          403,
          { reason: 'credential_type_required', required_credential_types: ['api_token', 'daemon_token'] },
        ])
      }
  })

  it('the actor comes before the role, the role before the input', async () => {
    expect(reasonOf(await ask('edits', { n: 'x' }, two))).toBe('actor_required')
    expect(reasonOf(await ask('edits', { n: 'x', acting: randomUUID() }, one))).toBe('actor_not_on_account')
    const reply = await ask('edits', { n: 'x' }, one)
    expect([reply.status, dataOf(reply)]).toEqual([
      403,
      { reason: 'insufficient_permissions', required_roles: ['chief', 'editor'] },
    ])
  })

  it('the input comes before the limiter, and what it refuses is not charged', async () => {
    const account = await test.account()
    const create = (params: unknown) => ask('cell_create', params, account)
    for (let i = 0; i < 3; i++) expect(reasonOf(await create({}))).toBe('invalid_params')
    expect(reasonOf(await create({ data: {} }))).toBe('ok')
    expect(reasonOf(await create({ data: {} }))).toBe('rate_limited')
    expect(reasonOf(await create({}))).toBe('invalid_params')
  })

  it('a public method has no guards: no credential changes anything', async () => {
    const plain = await ask('open')
    for (const cookie of [one.cookie, two.cookie, 'svc_session=broken'])
      expect((await rpc(test.url, call('open'), { cookie })).text).toBe(plain.text)
    expect(result(plain)).toEqual({ account: null, actor: null, roles: [] })
  })
})

describe('an account that goes away between its guard and its handler', () => {
  it('is 401 account_vanished, and nothing is written', async () => {
    const account = await test.account()
    vanishing = account.id
    const reply = await ask('cell_create', { data: {} }, account)
    expect([reply.status, dataOf(reply)]).toEqual([401, { reason: 'account_vanished' }])
    expect(
      await test.service.app.db.rows(sql`select from cell where created_by = ${account.actor_id}`),
    ).toEqual([])
  })
})

describe('the role gate', () => {
  let holder: TestAccount
  const edits = async (acting?: string) => reasonOf(await ask('edits', acting ? { acting } : {}, holder))
  beforeEach(async () => {
    holder = await test.account()
  })

  it('admits a global grant of any of the roles, with the grants in the context', async () => {
    for (const role of ['editor', 'chief']) {
      const account = await test.account({ roles: [role] })
      expect(result(await ask('edits', {}, account))).toEqual({
        account: account.id,
        actor: account.actor_id,
        roles: [role],
      })
    }
  })

  it('refuses another role, also admin and keeper', async () => {
    const account = await test.account({ roles: ['admin', 'keeper'] })
    expect(reasonOf(await ask('edits', {}, account))).toBe('insufficient_permissions')
  })

  it('refuses a grant at a scope', async () => {
    const scope_id = randomUUID()
    await test.roleGrant({ actor_id: holder.actor_id, role: 'editor', scope_kind: 'shelf', scope_id })
    expect(await edits()).toBe('insufficient_permissions')
  })

  it.each([
    ['expired', sql`expires_at = date_trunc('milliseconds', now())`],
    ['revoked', sql`revoked_at = now()`],
    ['closed', sql`expires_at = date_trunc('milliseconds', now()), closed_at = now()`],
  ])('refuses a grant that is %s, at the next call', async (_state, change) => {
    await test.roleGrant({ actor_id: holder.actor_id, role: 'editor' })
    expect(await edits()).toBe('ok')
    await run(sql`update role_grant set created_at = now() - interval '1 day', ${change}
      where actor_id = ${holder.actor_id}`)
    expect(await edits()).toBe('insufficient_permissions')
  })

  it('looks at the acting actor alone, not at its siblings', async () => {
    const second = await test.actor(holder.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'editor' })
    expect(await edits(holder.actor_id)).toBe('insufficient_permissions')
    expect(await edits(second)).toBe('ok')
    expect(await edits()).toBe('actor_required')
  })
})

describe('the scope of a token', () => {
  const full: TokenScope = { kind: 'full' }
  const readOnly: TokenScope = { kind: 'read_only' }
  const listed: TokenScope = { kind: 'methods', methods: ['reads', 'writes'] }
  const reads = { scope: 'rpc:reads', method: 'reads', side_effects: false }
  const writes = { scope: 'rpc:writes', method: 'writes', side_effects: true }
  const other = { scope: 'rpc:other', method: 'other', side_effects: false }
  const surface = { scope: 'surface:verify' }
  const table: [scope: TokenScope, target: typeof surface, own: string | undefined, reaches: boolean][] = [
    [full, reads, undefined, true],
    [full, writes, 'area:name', true],
    [full, surface, undefined, true],
    [readOnly, reads, undefined, true],
    [readOnly, reads, 'area:name', false],
    [readOnly, writes, undefined, false],
    [readOnly, surface, undefined, false],
    [listed, reads, undefined, true],
    [listed, writes, undefined, true],
    [listed, writes, 'area:name', false],
    [listed, other, undefined, false],
    [listed, surface, undefined, false],
  ]
  it.each(table)('%o on %o with required_scope %s: %s', (scope, target, required_scope, reaches) => {
    const caller = { credential: { type: 'api_token', id: 'x', scope, expires_at: null } } as Caller
    for (const account of ['required', 'optional'] as const) {
      const act = () =>
        guardCredential(
          { account, actor: 'none', ...(required_scope && { required_scope }) },
          caller,
          required_scope ? { ...target, scope: required_scope } : target,
        )
      if (reaches) expect(act).not.toThrow()
      else expect(act).toThrow(ServiceError)
    }
  })

  it('is named in the refusal, and comes after the type', () => {
    const caller = { credential: { type: 'api_token', id: 'x', scope: readOnly, expires_at: null } } as Caller
    const refused = (auth: AuthSpec) => {
      try {
        guardCredential(auth, caller, writes)
      } catch (error) {
        return (error as ServiceError).data
      }
    }
    expect(refused({ account: 'required', actor: 'none' })).toEqual({
      reason: 'token_scope_required',
      required_scope: 'rpc:writes',
    })
    expect(refused({ account: 'required', actor: 'none', credential_types: ['session'] })).toEqual({
      reason: 'credential_type_required',
      required_credential_types: ['session'],
    })
  })
})
