import { afterEach, describe, expect, test as it } from 'vitest'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'
import { CellDataIssues, type CellHooks } from '../registry/hooks.ts'
import { scenario } from '../testing/index.ts'

/** The hooks of the running test; the service calls whatever is set here. */
let hooks: CellHooks = {}
const seen: string[] = []
const log = capturedLog()

const test = await serviceForFile({
  log: log.log,
  hooks: {
    validateData(kind, data) {
      seen.push(`data ${kind}`)
      return hooks.validateData ? hooks.validateData(kind, data) : data
    },
    authorizeCreate(caller, input) {
      seen.push('create')
      return hooks.authorizeCreate ? hooks.authorizeCreate(caller, input) : true
    },
  },
})
const [ada, root] = await Promise.all([test.account(), test.account({ roles: ['admin'] })])
afterEach(() => {
  hooks = {}
  seen.length = 0
})

const cells = async (): Promise<number> =>
  (await test.service.app.db.first<{ n: number }>(sql`select count(*) as n from cell`))?.n as number

describe('when they run', () => {
  it('create runs the data hook, then the create hook', async () => {
    await ada.client.cell_create({ kind: 'note', data: {} })
    expect(seen).toEqual(['data note', 'create'])
  })

  it('update runs only the data hook, with the stored kind, and only if data is sent', async () => {
    const { cell } = await ada.client.cell_create({ kind: 'note', data: { a: 1 } })
    const cell_id = cell.id
    seen.length = 0
    await ada.client.cell_update({ cell_id, visibility: 'public' })
    await ada.client.cell_update({ cell_id })
    await root.client.cell_update({ cell_id, path: 'hooked' })
    expect(seen).toEqual([])
    await ada.client.cell_update({ cell_id, data: { a: 1 } })
    await ada.client.cell_update({ cell_id, data_patch: {} })
    expect(seen).toEqual(['data note', 'data note'])
  })

  it('an earlier refusal skips them', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    seen.length = 0
    await reasonOf(ada.client.cell_create({ data: {}, path: 'p' }))
    await reasonOf(ada.client.cell_create({ data: { kind: 1 } }))
    await reasonOf(ada.client.cell_create({ data: {}, kind: '' }))
    await reasonOf(root.client.cell_update({ cell_id: cell.id, data: {}, expected_version: 9 }))
    await reasonOf((await test.account()).client.cell_update({ cell_id: cell.id, data: {} }))
    expect(seen).toEqual([])
  })
})

describe('the data hook', () => {
  it('may transform the data, on creation and on update', async () => {
    hooks.validateData = (_kind, data) => ({ ...data, checked: true })
    const { cell } = await ada.client.cell_create({ data: { a: 1 } })
    expect(cell.data).toEqual({ a: 1, checked: true })
    const updated = await ada.client.cell_update({ cell_id: cell.id, data: { b: 1 } })
    expect(updated.cell.data).toEqual({ b: 1, checked: true })
    // Once transformed it equals the stored data, so nothing is written.
    await scenario(test, () => ada.client.cell_update({ cell_id: cell.id, data: { b: 1, checked: true } }))
  })

  it('may return a promise', async () => {
    hooks.validateData = async (_kind, data) => ({ ...data, later: 1 })
    expect((await ada.client.cell_create({ data: {} })).cell.data).toEqual({ later: 1 })
  })

  it('sees a patch merged, and ordinary keys as they are', async () => {
    const { cell } = await ada.client.cell_create({ data: { a: { b: 1 }, gone: 1 } })
    let text = ''
    hooks.validateData = (_kind, data) => {
      text = JSON.stringify(data)
      return data
    }
    const data_patch = JSON.parse('{"a":{"__proto__":2},"gone":null}')
    await ada.client.cell_update({ cell_id: cell.id, data_patch })
    expect(text).toBe('{"a":{"b":1,"__proto__":2}}')
  })

  it('works on a copy: what it changes in it and does not return is not stored', async () => {
    hooks.validateData = (_kind, data) => {
      const answer = structuredClone(data)
      data.smuggled = true
      return answer
    }
    const { cell } = await ada.client.cell_create({ data: { a: 1 } })
    expect(cell.data).toEqual({ a: 1 })
    await scenario(test, () => ada.client.cell_update({ cell_id: cell.id, data_patch: { a: 1 } }))
  })

  it('what it changes in place, deep inside, and returns is a change', async () => {
    const { cell } = await ada.client.cell_create({ data: { a: { n: 1 } } })
    hooks.validateData = (_kind, data) => {
      Object.assign(data.a as object, { n: 2 })
      return data
    }
    const { cell: changed } = await ada.client.cell_update({ cell_id: cell.id, data_patch: {} })
    expect(changed).toMatchObject({ version: 2, data: { a: { n: 2 } } })
  })

  it('refuses with its issues, paths and messages as it gave them, at most twenty', async () => {
    hooks.validateData = () => {
      throw new CellDataIssues([{ path: ['list', 0], message: 'No list here.' }])
    }
    const { cell } = await root.client.cell_create({ data: {} }).catch((error) => ({ cell: error }))
    expect(cell).toMatchObject({
      status: 400,
      data: {
        reason: 'cell_data_invalid',
        issues: [{ path: ['list', 0], code: 'custom', message: 'No list here.' }],
      },
    })
    hooks.validateData = () => {
      throw new CellDataIssues(Array.from({ length: 30 }, (_, i) => ({ path: [i], message: 'x' })))
    }
    const many = await ada.client.try.cell_create({ data: {} })
    expect(many).toMatchObject({ ok: false, error: { data: { issues: { length: 20 } } } })
  })

  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  let deep: unknown = {}
  for (let i = 0; i < 64; i++) deep = [deep]
  it.each<[string, unknown]>([
    ['too large', { a: 'x'.repeat(262_144) }],
    ['too large in the database', { a: Array(1700).fill(5e-324) }],
    ['too deep', { deep }],
    ['with a kind', { kind: null }],
    ['with a label that is too long', { label: 'x'.repeat(1025) }],
    ['with a label that is no text', { label: 1 }],
    ['with a summary of null', { summary: null }],
    ['with a NUL', { a: '\0' }],
    ['with a lone surrogate in a key', { '\ud800': 1 }],
    ['with a number that is none', { a: [Number.NaN] }],
    ['with infinity', { a: { b: Number.POSITIVE_INFINITY } }],
    ['that holds itself', cyclic],
    ['with a bigint', { a: 1n }],
    ['that is an array', []],
    ['that is null', null],
    ['that is missing', undefined],
    ['that is a function', () => ({})],
  ])('what it returns must be data again: %s', async (_what, result) => {
    const before = await cells()
    const { cell } = await ada.client.cell_create({ data: {} })
    hooks.validateData = () => result as never
    const reason = 'cell_data_invalid'
    await scenario(test, () => ada.client.cell_create({ data: {} }), { reason })
    await scenario(test, () => ada.client.cell_update({ cell_id: cell.id, data: { a: 1 } }), { reason })
    expect(await cells()).toBe(before + 1)
  })

  it('what it returns is stored as JSON has it', async () => {
    hooks.validateData = () => ({ at: new Date(0), none: undefined, minus: -0 })
    const { cell } = await ada.client.cell_create({ data: {} })
    expect(cell.data).toEqual({ at: '1970-01-01T00:00:00.000Z', minus: 0 })
    expect((await ada.client.cell_get({ id: cell.id })).cell.data).toEqual(cell.data)
  })
})

describe('the create hook', () => {
  it('gets the caller and the new cell, after the data hook', async () => {
    const calls: unknown[] = []
    hooks.validateData = (_kind, data) => ({ ...data, checked: true })
    hooks.authorizeCreate = (caller, input) => {
      calls.push(caller, input)
      return true
    }
    await ada.client.cell_create({ kind: 'note', data: { a: 1 } })
    await root.client.cell_create({ visibility: 'public', path: 'seen', data: {} })
    expect(calls).toEqual([
      { actor_id: ada.actor_id, account_id: ada.id, is_admin: false },
      {
        operation: 'create',
        kind: 'note',
        visibility: 'private',
        path: null,
        data: { a: 1, checked: true },
        source_id: null,
      },
      { actor_id: root.actor_id, account_id: root.id, is_admin: true },
      {
        operation: 'create',
        kind: null,
        visibility: 'public',
        path: 'seen',
        data: { checked: true },
        source_id: null,
      },
    ])
  })

  it.each<[string, unknown]>([
    ['false', false],
    ['nothing', undefined],
    ['a text', 'yes'],
    ['an object', {}],
    ['a promise of false', Promise.resolve(false)],
  ])('anything but true refuses, admins too: %s', async (_what, answer) => {
    hooks.authorizeCreate = () => answer as boolean
    const reason = 'cell_create_forbidden'
    await scenario(test, () => ada.client.cell_create({ data: {} }), { reason })
    await scenario(test, () => root.client.cell_create({ data: {}, path: 'refused' }), { reason })
  })

  it('what it changes in its input is not stored', async () => {
    hooks.authorizeCreate = async (caller, input) => {
      Object.assign(caller, { actor_id: root.actor_id, is_admin: true })
      Object.assign(input, { kind: 'other', visibility: 'public', path: 'smuggled' })
      input.data.kind = 'smuggled'
      Object.assign(input.data.inner as object, { added: true })
      return true
    }
    const { cell } = await ada.client.cell_create({ data: { inner: {} } })
    expect(cell).toMatchObject({ kind: null, visibility: 'private', path: null, data: { inner: {} } })
    expect(cell.data).toEqual({ inner: {} })
    expect(cell.created_by).toBe(ada.actor_id)
  })
})

describe('anything else that a hook throws', () => {
  const secret = 'the text of the hook'
  it.each<[string, () => unknown]>([
    ['an error', () => new Error(secret)],
    ['a text', () => secret],
    ['nothing', () => undefined],
    ['a refusal of the service', () => refusal('account_vanished', { secret })],
    ['an error like a deadlock', () => Object.assign(new Error(secret), { code: '40P01' })],
    ['an error like a lost database', () => Object.assign(new Error(secret), { code: 'ECONNREFUSED' })],
    ['what looks like issues', () => ({ issues: [{ path: [], message: secret }] })],
  ])('is an internal error, its text only in the log: %s', async (_what, thrown) => {
    const before = await cells()
    const { cell } = await ada.client.cell_create({ data: {} })
    for (const hook of ['validateData', 'authorizeCreate'] as const) {
      seen.length = 0
      hooks = {
        [hook]: () => {
          throw thrown()
        },
      }
      const failure = { outcome: 'failure' as const, metadata: { reason: 'rolled_back' } }
      const sent = ada.client.try.cell_create({ data: {} })
      expect(JSON.stringify(await sent)).not.toContain('text of')
      await scenario(test, () => ada.client.cell_create({ data: {} }), {
        reason: 'internal_error',
        audit: [{ event_type: 'cell_create', actor_id: ada.actor_id, ...failure }],
      })
      expect(
        seen.filter((call) => call.startsWith(hook === 'validateData' ? 'data' : 'create')),
      ).toHaveLength(2)
      if (hook === 'authorizeCreate') continue
      await scenario(test, () => ada.client.cell_update({ cell_id: cell.id, data: { a: 1 } }), {
        reason: 'internal_error',
        audit: [{ event_type: 'cell_update', actor_id: ada.actor_id, ...failure }],
      })
    }
    expect(await cells()).toBe(before + 1)
    expect((await ada.client.cell_get({ id: cell.id })).cell).toMatchObject({ data: {}, version: 1 })
    if (thrown() instanceof Error) expect(log.text()).toContain(secret)
  })
})
