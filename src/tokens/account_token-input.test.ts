import { describe, expect, it } from 'vitest'
import { eternal, tokenOf } from '../../test/helpers/callers.ts'
import { call, rpc } from '../../test/helpers/http.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const full = { kind: 'full' } as const
const test = await serviceForFile()

const tokensOf = async ({ client }: TestAccount) => (await client.account_token_list()).tokens

describe('the input of account_token_create', () => {
  const methods = (count: number) => Array.from({ length: count }, () => 'cell_get')
  const good = { scope: full, lifetime: eternal }
  const days = (value: unknown) => ({ ...good, lifetime: { kind: 'ttl', days: value } })
  const scoped = (scope: unknown) => ({ ...good, scope })
  it.each<[string, object, (string | number)[], string]>([
    ['no scope', { lifetime: eternal }, ['scope'], 'invalid_type'],
    ['a null scope', { ...good, scope: null }, ['scope'], 'invalid_type'],
    ['a scope as text', scoped('full'), ['scope'], 'invalid_type'],
    ['an unknown scope', scoped({ kind: 'admin' }), ['scope', 'kind'], 'invalid_union'],
    ['a scope without a kind', scoped({}), ['scope', 'kind'], 'invalid_type'],
    [
      'an extra key in a scope',
      scoped({ kind: 'full', methods: ['cell_get'] }),
      ['scope', 'methods'],
      'unrecognized_keys',
    ],
    ['no methods', scoped({ kind: 'methods' }), ['scope', 'methods'], 'invalid_type'],
    ['no method', scoped({ kind: 'methods', methods: [] }), ['scope', 'methods'], 'too_small'],
    ['101 methods', scoped({ kind: 'methods', methods: methods(101) }), ['scope', 'methods'], 'too_big'],
    [
      'a number as method',
      scoped({ kind: 'methods', methods: [7] }),
      ['scope', 'methods', 0],
      'invalid_type',
    ],
    ['no lifetime', { scope: full }, ['lifetime'], 'invalid_type'],
    ['a null lifetime', { ...good, lifetime: null }, ['lifetime'], 'invalid_type'],
    [
      'an unknown lifetime',
      { ...good, lifetime: { kind: 'forever' } },
      ['lifetime', 'kind'],
      'invalid_union',
    ],
    [
      'days of an eternal one',
      { ...good, lifetime: { kind: 'eternal', days: 1 } },
      ['lifetime', 'days'],
      'unrecognized_keys',
    ],
    ['no days', { ...good, lifetime: { kind: 'ttl' } }, ['lifetime', 'days'], 'invalid_type'],
    ['null days', days(null), ['lifetime', 'days'], 'invalid_type'],
    ['days as text', days('7'), ['lifetime', 'days'], 'invalid_type'],
    ['a day and a half', days(1.5), ['lifetime', 'days'], 'invalid_type'],
    ['0 days', days(0), ['lifetime', 'days'], 'too_small'],
    ['-1 days', days(-1), ['lifetime', 'days'], 'too_small'],
    ['36501 days', days(36_501), ['lifetime', 'days'], 'too_big'],
    ['a null name', { ...good, name: null }, ['name'], 'invalid_type'],
    ['a blank name', { ...good, name: '  ' }, ['name'], 'too_small'],
    ['101 code points of name', { ...good, name: '😀'.repeat(101) }, ['name'], 'too_big'],
    ['a control character in the name', { ...good, name: 'a\u0007b' }, ['name'], 'invalid_format'],
    ['a C1 control character in the name', { ...good, name: 'a\u0085b' }, ['name'], 'invalid_format'],
    ['NUL in the name', { ...good, name: 'a\0b' }, ['name'], 'invalid_format'],
    [
      'a lone surrogate in a method',
      scoped({ kind: 'methods', methods: ['\ud800'] }),
      ['scope', 'methods', 0],
      'invalid_format',
    ],
    ['acting', { ...good, acting: '00000000-0000-4000-8000-000000000000' }, ['acting'], 'unrecognized_keys'],
  ])('with %s is refused', async (_what, input, path, code) => {
    const ada = await test.account()
    const { json } = await rpc(test.url, call('account_token_create', input), { cookie: ada.cookie })
    const { error } = json as { error: { code: number; data: { reason: string; issues: unknown[] } } }
    expect(error.code).toBe(-32602)
    expect(error.data).toEqual({
      reason: 'invalid_params',
      issues: [{ path, code, message: expect.any(String) }],
    })
    expect(await tokensOf(ada)).toEqual([])
  })

  it('of 100 methods passes', async () => {
    const ada = await test.account()
    const scope = { kind: 'methods' as const, methods: methods(100) }
    expect((await tokenOf(test, ada, scope)).scope).toBe('methods:cell_get')
  })

  it('with a method that does not exist is refused by its place, never by its name', async () => {
    const ada = await test.account()
    const scope = { kind: 'methods', methods: ['cell_get', 'no_such_thing', '__proto__', 'rpc.x'] }
    const { status, json, text } = await rpc(
      test.url,
      call('account_token_create', { scope, lifetime: eternal }),
      { cookie: ada.cookie },
    )
    expect(status).toBe(400)
    expect(json).toMatchObject({
      error: {
        code: -32602,
        data: {
          reason: 'unknown_method',
          issues: [1, 2, 3].map((at) => ({ path: ['scope', 'methods', at], code: 'invalid_value' })),
        },
      },
    })
    expect(text).not.toMatch(/no_such_thing|__proto__|rpc\.x/)
  })

  it('is judged before the limiter, and a refused one costs nothing', async () => {
    await using limited = await testService({ limit_account: '1/900' })
    const ada = await limited.account()
    const create = async (scope: object) =>
      await reasonOf(ada.client.account_token_create({ scope: scope as typeof full, lifetime: eternal }))
    const unknown = { kind: 'methods', methods: ['nothing'] }
    expect(await create(unknown)).toBe('unknown_method')
    expect(await create(full)).toBe('ok')
    expect(await create(full)).toBe('rate_limited')
    expect(await create(unknown)).toBe('unknown_method')
    expect(await create({ kind: 'methods', methods: [] })).toBe('invalid_params')
  })
})
