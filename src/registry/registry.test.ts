import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { StartError } from '../errors.ts'
import { createRegistry, type RegistryOptions } from './registry.ts'

/** The message that stops the start; undefined if it succeeds. */
function problem(options: object): string | undefined {
  try {
    createRegistry(options as RegistryOptions)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(StartError)
    expect(error).toMatchObject({ reason: 'invalid_registry', exitCode: 78 })
    return (error as StartError).message
  }
}

const plain = ['scope_kinds', 'grant_paths', 'credential_types'] as const
const entry = (key: string, name: unknown) =>
  key === 'audit_events'
    ? { audit_events: { [name as string]: null } }
    : { [key]: [key === 'roles' ? { name, grant_paths: [] } : { name }] }

describe('the name of an entry', () => {
  const longest = 'a'.repeat(64)
  it.each(['roles', ...plain])('of %s is a Name', (key) => {
    for (const name of ['a', 'a__b', 'class_room', longest]) expect(problem(entry(key, name))).toBeUndefined()
    for (const name of ['A', 'a_', '_a', 'a1', 'a-b', '', `${longest}a`, 'a\n', 'é', '__proto__'])
      expect(problem(entry(key, name))).toContain(`${key}: the `)
    for (const name of [undefined, null, 1, ['a'], {}])
      expect(problem(entry(key, name))).toContain('must be 1')
  })

  it('of an audit event type may have capitals, digits and separators', () => {
    for (const type of ['a', 'Team/delete.v2-b_', 'x'.repeat(128), 'constructor', 'toString'])
      expect(problem(entry('audit_events', type))).toBeUndefined()
    for (const type of ['', '1a', '_a', 'a b', 'a\n', 'é', 'x'.repeat(129)])
      expect(problem(entry('audit_events', type))).toContain('audit_events: the audit event type')
  })

  it.each([
    ['roles', 'keeper'],
    ['roles', 'admin'],
    ['grant_paths', 'self_service'],
    ['credential_types', 'session'],
    ['audit_events', 'login'],
    ['audit_events', 'cell_update'],
  ])('of %s may not be the built-in %s', (key, name) => {
    expect(problem(entry(key, name))).toContain(`"${name}" is built in`)
  })

  it.each(['roles', ...plain])('stands once among %s', (key) => {
    const [once] = Object.values(entry(key, 'twice')) as [object[]]
    expect(problem({ [key]: [...once, ...once] })).toContain('"twice" is registered twice')
  })

  it('may be the same in two registries', () => {
    expect(problem({ ...entry('roles', 'team'), ...entry('scope_kinds', 'team') })).toBeUndefined()
  })
})

describe('an entry', () => {
  it.each(['roles', ...plain])('of %s is an object without unknown keys', (key) => {
    const [[good]] = Object.values(entry(key, 'good')) as [[object]]
    expect(problem({ [key]: [{ ...good, description: 'x'.repeat(500) }] })).toBeUndefined()
    expect(problem({ [key]: [{ ...good, grant_path: [] }] })).toMatch(
      /"good" has the unknown key "grant_path"/,
    )
    for (const description of ['x'.repeat(501), 1, null])
      expect(problem({ [key]: [{ ...good, description }] })).toMatch(/"good" must have a text of at most/)
    for (const bad of ['good', null, 1, ['good']])
      expect(problem({ [key]: [bad] })).toMatch(/must be an object/)
  })

  it('of the audit events is a schema or null', () => {
    expect(problem({ audit_events: { a: z.strictObject({}), b: null } })).toBeUndefined()
    for (const bad of [undefined, {}, 'x', () => null])
      expect(problem({ audit_events: { a: bad } })).toMatch(/"a" must have the schema/)
  })
})

describe('a self-service role', () => {
  const roles = [
    { name: 'tester', grant_paths: ['self_service'] },
    { name: 'reader', grant_paths: ['admin'] },
  ]

  it('is a role with the grant path self_service, and only such a role is suggested', () => {
    const named = (name: string) => problem({ roles, self_service_roles: [name] })
    const refusal = (name: string) =>
      `self_service_roles: "${name}" is not a registered role with the grant path self_service`
    expect(named('tester')).toBeUndefined()
    expect(named('testr')).toBe(`${refusal('testr')}; did you mean tester?`)
    for (const name of ['reader', 'raeder', null, undefined] as string[])
      expect(named(name)).toBe(`${refusal(name)}.`)
  })
})

describe('a reason', () => {
  const reasons = (spec: unknown, name = 'page_locked') => problem({ reasons: { [name]: spec } })
  const good = { status: 409, message: 'Somebody edits this page.' }

  it('has a status of a refusal and a text', () => {
    expect(reasons(good)).toBeUndefined()
    for (const status of [399, 600, 409.5, '409', undefined])
      expect(reasons({ ...good, status })).toMatch(/"page_locked" must have an HTTP status from 400 to 599/)
    for (const message of ['', 1, undefined, 'x'.repeat(501)])
      expect(reasons({ ...good, message })).toMatch(/"page_locked" must have a text/)
    for (const spec of [null, 409, []]) expect(reasons(spec)).toMatch(/must be an object with status/)
    expect(reasons({ ...good, mesage: 'x' })).toMatch(/unknown key "mesage"; did you mean message\?/)
  })

  it('has a name of its own', () => {
    for (const name of [
      'cell_not_found',
      'rate_limited',
      'transport_failed',
      'connection_lost',
      'not_connected',
    ])
      expect(reasons(good, name)).toContain(`"${name}" is built in`)
    for (const name of ['Page', 'page-locked', '', '_x', '1x'])
      expect(reasons(good, name)).toContain('reasons: the reason')
  })
})

describe('a notification', () => {
  const declare = (schema: unknown, name = 'page_changed') => problem({ notifications: { [name]: schema } })

  it('has a schema, and a name of its own', () => {
    expect(declare(z.strictObject({ page_id: z.uuid() }))).toBeUndefined()
    for (const schema of [null, {}, undefined, 'x'])
      expect(declare(schema)).toMatch(/"page_changed" must have the schema of its params/)
    for (const schema of [z.string(), z.array(z.uuid()), z.null()])
      expect(declare(schema)).toMatch(/"page_changed" must have the schema of an object/)
    expect(declare(z.strictObject({}), 'role_grant_revoke')).toContain('is built in')
    expect(declare(z.strictObject({}), 'closed')).toContain('an event of the live client')
    expect(declare(z.strictObject({}), 'page/changed')).toContain('notifications: the notification')
  })
})

describe('a role', () => {
  const role = (more: object) => ({ roles: [{ name: 'teacher', grant_paths: [], ...more }] })
  it.each([
    ['grant_paths', 'friends', /"teacher" names "friends" in grant_paths/],
    ['required_credential_types', 'password', /"teacher" names "password" in required_credential_types/],
    ['applicable_scope_kinds', 'room', /"teacher" names "room" in applicable_scope_kinds/],
  ])('that names something unregistered in %s stops the start', (key, name, message) => {
    expect(problem(role({ [key]: [name] }))).toMatch(message)
    expect(problem(role({ [key]: name }))).toMatch(/"teacher" must have a list as /)
    expect(problem(role({ [key]: [1] }))).toMatch(/"teacher" names "1"/)
  })

  it('needs its grant paths, and they may be none', () => {
    expect(problem({ roles: [{ name: 'teacher' }] })).toMatch(/"teacher" must have a list as grant_paths/)
    expect(problem(role({}))).toBeUndefined()
  })

  it('may name what the consumer registers beside it, in any order of the options', () => {
    const registry = createRegistry({
      ...role({
        grant_paths: ['friends', 'admin'],
        required_credential_types: ['passkey'],
        applicable_scope_kinds: ['room'],
      }),
      grant_paths: [{ name: 'friends' }],
      credential_types: [{ name: 'passkey', description: 'A key.' }],
      scope_kinds: [{ name: 'room' }],
    })
    expect(registry.grantable).toEqual(['admin', 'teacher'])
    expect(registry.isScopeKind('room')).toBe(true)
    for (const type of ['passkey', 'session', 'api_token', 'daemon_token'])
      expect(registry.isCredentialType(type)).toBe(true)
    for (const type of ['friends', 'toString']) expect(registry.isCredentialType(type)).toBe(false)
    expect(registry.role('toString')).toBeUndefined()
    expect(registry.events.has('toString')).toBe(false)
  })
})
