/**
 * `node scripts/record-examples.ts`: calls every method and route of a real service once, and writes what was sent
 * and answered to src/discovery/examples.json. Ids, times, addresses, secrets and cursors are replaced by fixed ones.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { actions } from '../src/actions.ts'
import { sql } from '../src/db/db.ts'
import { routeList } from '../src/routes.ts'
import { testService } from '../src/testing/index.ts'
import { mailIsDown, tokenMailedTo } from '../test/helpers/mailed.ts'
import { type TestProvider, testProvider } from '../test/helpers/oidc.ts'
import { device, onLocalhost } from '../test/helpers/passkeys.ts'
import { codeOf } from '../test/helpers/totp.ts'

export type Examples = {
  methods: Record<string, { params: object; result: unknown }>
  routes: Record<string, { body?: object; result?: object }>
}

export const examplesFile = new URL('../src/discovery/examples.json', import.meta.url)

/** Described by the document that it answers with. */
const withoutExample = ['rpc.discover']

export async function recordExamples(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'cellkeep-examples-'))
  const tokenFile = join(directory, 'bootstrap_token')
  const provider = await testProvider()
  const test = await testService({
    oidc: [provider.entry()],
    app_settings: true,
    username_change: 'self',
    ...mailIsDown,
    ...onLocalhost,
    invite_claim: 'match',
    bootstrap: 'live',
    bootstrap_token_path: tokenFile,
    roles: [{ name: 'reviewer', grant_paths: ['admin', 'self_service'] }],
    self_service_roles: ['reviewer'],
  })
  try {
    const seen: Examples = { methods: {}, routes: {} }
    await story(new Recorder(test.url, seen), {
      bootstrapToken: (await readFile(tokenFile, 'utf8')).trim(),
      daemonToken: test.daemonToken.current,
      provider,
      linkId: async () =>
        (await test.service.app.db.one<{ id: string }>(sql`select id from account_link`)).id,
      tokenMailedTo: (account) => tokenMailedTo(test, account),
    })
    const names = Object.keys(actions).filter((name) => !withoutExample.includes(name))
    const routes = routeList.map(({ method, path }) => `${method} ${path}`)
    return written(mask(inOrder(seen, names, routes)))
  } finally {
    await test.close()
    await provider.close()
    await rm(directory, { recursive: true })
  }
}

/** One example per line. */
function written({ methods, routes }: Examples): string {
  const lines = (all: object): string =>
    Object.entries(all)
      .map(([name, example]) => `  ${JSON.stringify(name)}: ${JSON.stringify(example)}`)
      .join(',\n')
  return `{"methods": {\n${lines(methods)}\n}, "routes": {\n${lines(routes)}\n}}\n`
}

/** Fails if the story leaves a method or route out. */
function inOrder(seen: Examples, names: string[], routes: string[]): Examples {
  assert.deepEqual(Object.keys(seen.methods).sort(), names.toSorted(), 'every method has an example')
  assert.deepEqual(Object.keys(seen.routes).sort(), routes.toSorted(), 'every route has an example')
  const pick = <T>(all: Record<string, T>, keys: string[]): Record<string, T> =>
    Object.fromEntries(keys.map((key) => [key, all[key] as T]))
  return { methods: pick(seen.methods, names), routes: pick(seen.routes, routes) }
}

// biome-ignore lint/suspicious/noExplicitAny: the story picks ids out of answers of every shape
type Answer = any

/** Calls as one caller at a time; `first` of each method or route is kept. */
class Recorder {
  readonly #url: string
  readonly #seen: Examples
  headers: Record<string, string> = {}
  /** What the last route has answered. */
  answer: Answer

  constructor(url: string, seen: Examples) {
    this.#url = url
    this.#seen = seen
  }

  async rpc(method: string, params: object = {}): Promise<Answer> {
    const { json } = await this.#send('POST', '/api/rpc', { jsonrpc: '2.0', id: 1, method, params })
    assert.ok('result' in json, `${method}: ${JSON.stringify(json)}`)
    this.#seen.methods[method] ??= { params, result: json.result }
    return json.result
  }

  /** Resolves to the cookie that the answer sets. */
  async rest(method: 'GET' | 'POST', path: string, body?: object): Promise<string> {
    const { status, json, cookie } = await this.#send(method, `/api/account${path}`, body)
    assert.equal(status, 200, `${path}: ${JSON.stringify(json)}`)
    this.answer = json
    this.#seen.routes[`${method} ${path}`] ??= { ...(body && { body }), ...(json && { result: json }) }
    return cookie
  }

  /** Resolves to the cookie of the flow that asks for the second step. */
  async firstStep(path: string, body: object): Promise<string> {
    const { status, cookie } = await this.#send('POST', `/api/account${path}`, body)
    assert.equal(status, 401)
    return cookie
  }

  async #send(method: string, path: string, body?: object) {
    const response = await fetch(this.#url + path, {
      method,
      headers: { ...(body && { 'content-type': 'application/json' }), ...this.headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    const [cookie = ''] = response.headers.getSetCookie()
    return {
      status: response.status,
      json: text === '' ? undefined : JSON.parse(text),
      cookie: cookie.split(';', 1)[0] as string,
    }
  }
}

/** What callers get from outside the API. */
type Outside = {
  bootstrapToken: string
  daemonToken: string
  tokenMailedTo(account: { id: string }): Promise<string>
  provider: TestProvider
  linkId(): Promise<string>
}

async function story(call: Recorder, outside: Outside): Promise<void> {
  const { bootstrapToken, daemonToken, tokenMailedTo } = outside
  const [username, password] = ['ada', 'correct horse battery']
  const ada = { cookie: await call.rest('POST', '/bootstrap', { token: bootstrapToken, username, password }) }
  call.headers = ada
  await call.rest('GET', '/status')
  await call.rest('GET', '/verify')
  const self = await call.rpc('account_verify')
  await linkAndUnlink(call, outside, ada)

  await call.rpc('app_settings_get')
  await call.rpc('app_settings_update', { open_signup: false })
  const { invite } = await call.rpc('invite_create', { email: 'grace@example.org' })
  await call.rpc('invite_list', {})
  const { link } = await call.rpc('invite_send', { invite_id: invite.id, reveal: true })
  await call.rest('POST', '/ticket', { token: tokenIn(link) })
  await call.rpc('invite_delete', { invite_id: invite.id })
  await call.rpc('invite_create', { username: 'grace' })

  call.headers = {}
  await call.rest('GET', '/options')
  const signup = { username: 'grace', password: 'an even longer password' }
  await call.rest('POST', '/signup', signup)
  const grace = { cookie: await call.rest('POST', '/login', signup) }
  call.headers = grace
  call.headers = { cookie: await call.rest('POST', '/reauthenticate', { password: signup.password }) }
  const grace_id = (await call.rpc('account_verify')).id
  await sessionsAndTokens(call, signup.password)
  await call.rpc('account_email_change', { email: 'grace@example.org' })
  await call.rest('POST', '/email_confirm', { token: await tokenMailedTo({ id: grace_id }) })
  await call.rest('POST', '/logout')

  call.headers = {}
  call.headers = { cookie: await call.rest('POST', '/login', { ...signup, password: changedPassword }) }
  await secondFactor(call, changedPassword)
  await passkeys(call)

  call.headers = ada
  const { actors } = await call.rpc('actor_search', { query: 'gra' })
  const grace_actor_id = actors[0].id
  await call.rpc('actor_lookup', { ids: [grace_actor_id] })
  const again = { username: 'grace', password: changedPassword }
  call.headers = {}
  const back = { cookie: await call.rest('POST', '/login', again) }
  await rolesAndOffers(call, { ada, grace: back, grace_id, grace_actor_id })
  await cells(call, ada, grace_actor_id)

  call.headers = ada
  await call.rpc('admin_account_list', { limit: 1 })
  await call.rpc('admin_account_get', { account_id: grace_id })
  await call.rpc('admin_account_email_set', { account_id: grace_id, email: null })
  await call.rpc('admin_account_username_set', { account_id: grace_id, username: 'grace-hopper' })
  await call.rpc('admin_account_username_set', { account_id: grace_id, username: 'grace' })
  await call.rpc('admin_account_factors_clear', { account_id: grace_id })
  const { sessions } = await call.rpc('admin_session_list', { account_id: grace_id })
  await call.rpc('admin_session_revoke', { session_id: sessions[0].id })
  await call.rpc('admin_session_revoke_all', { account_id: grace_id })
  await call.rest('POST', '/recover', { identifier: 'grace' })
  const made = await call.rpc('admin_account_reset_link_create', { account_id: grace_id, reveal: true })
  await call.rest('POST', '/reset', { token: tokenIn(made.link), password: changedPassword })
  await call.rpc('admin_ticket_list', { limit: 1 })
  await call.rpc('admin_ticket_revoke', { ticket_id: made.ticket.id })
  await call.rpc('admin_message_list', { limit: 1 })
  call.headers = {}
  call.headers = { cookie: await call.rest('POST', '/login', again) }
  const { id: token_id } = await call.rpc('account_token_create', {
    name: 'report',
    scope: { kind: 'read_only' },
    lifetime: { kind: 'eternal' },
  })
  call.headers = ada
  await call.rpc('admin_token_list', { account_id: grace_id })
  await call.rpc('admin_token_revoke', { token_id })
  await call.rpc('admin_token_revoke_all', { account_id: grace_id })
  await call.rpc('audit_log_list', { event_type: 'invite_create', limit: 1 })
  const [from, to] = ['2026-01-02T09:00:00.000Z', '2026-01-02T10:00:00.000Z']
  await call.rpc('audit_log_activity', { from, to, bucket_s: 1800 })
  await call.rpc('audit_log_role_grant_history', { limit: 1 })
  await call.rpc('service_status')
  await call.rpc('account_delete_preview', { account_id: grace_id })
  await call.rpc('account_delete', { account_id: grace_id })
  await call.rpc('account_undelete', { account_id: grace_id })
  call.headers = { 'x-daemon-token': daemonToken }
  await call.rpc('account_purge', { account_id: grace_id, confirm: true })
  assert.equal(self.username, username)
}

async function linkAndUnlink(
  call: Recorder,
  { provider, linkId }: Outside,
  { cookie }: Cookie,
): Promise<void> {
  call.headers = { cookie }
  const flow = await call.rest('POST', '/oidc_start', { provider: 'corp', intent: 'link' })
  const query = provider.authorize(call.answer.url, { sub: 'ada' })
  call.headers = { cookie: `${cookie}; ${flow}` }
  await call.rest('POST', '/oidc_finish', { provider: 'corp', query })
  call.headers = { cookie }
  await call.rpc('account_link_remove', { link_id: await linkId() })
}

const tokenIn = (link: string): string => link.split('#ticket=')[1] as string

const changedPassword = 'another long password'

/** As an account that is signed in twice; leaves it signed in once. */
async function sessionsAndTokens(call: Recorder, password: string): Promise<void> {
  const { sessions } = await call.rpc('account_session_list')
  await call.rpc('account_session_revoke', { session_id: sessions[1].id })
  const { id } = await call.rpc('account_token_create', {
    name: 'backup script',
    scope: { kind: 'methods', methods: ['cell_list', 'cell_get'] },
    lifetime: { kind: 'ttl', days: 30 },
  })
  await call.rpc('account_token_list')
  await call.rpc('account_token_revoke', { token_id: id })
  await call.rpc('account_session_revoke_all')
  const login = async (secret: string): Promise<void> => {
    call.headers = {}
    call.headers = { cookie: await call.rest('POST', '/login', { username: 'grace', password: secret }) }
  }
  await login(password)
  await call.rest('POST', '/password', { current_password: password, new_password: changedPassword })
  await login(changedPassword)
  await call.rpc('account_email_verify_send')
  await call.rpc('account_username_change', { username: 'grace-h' })
  await call.rpc('account_username_change', { username: 'grace' })
  await call.rpc('actor_rename', { name: 'Grace' })
}

/** As an account that has just signed in; leaves it without a passkey. */
async function passkeys(call: Recorder): Promise<void> {
  const phone = device()
  const { options } = await call.rpc('account_passkey_register_begin')
  const { passkey } = await call.rpc('account_passkey_register_finish', { response: phone.create(options) })
  await call.rpc('account_passkey_rename', { passkey_id: passkey.id, name: 'Phone' })
  call.headers = {}
  call.headers = { cookie: await call.rest('POST', '/passkey_begin', {}) }
  const response = phone.get(call.answer.options)
  call.headers = { cookie: await call.rest('POST', '/passkey_finish', { response }) }
  await call.rpc('account_passkey_remove', { passkey_id: passkey.id })
}

/** As an account that is signed in; leaves it without a second factor. */
async function secondFactor(call: Recorder, password: string): Promise<void> {
  const { secret } = await call.rpc('account_totp_enrol')
  const { recovery_codes } = await call.rpc('account_totp_confirm', { code: codeOf(secret) })
  await call.rpc('account_sign_in_get')
  const { recovery_codes: codes } = await call.rpc('account_recovery_codes_create')
  assert.equal(recovery_codes.length, codes.length)
  call.headers = {}
  call.headers = { cookie: await call.firstStep('/login', { username: 'grace', password }) }
  const recovery_code = codes[0]
  call.headers = { cookie: await call.rest('POST', '/second_factor', { recovery_code }) }
  await call.rpc('account_totp_remove')
}

type Cookie = { cookie: string }

async function rolesAndOffers(
  call: Recorder,
  at: { ada: Cookie; grace: Cookie; grace_id: string; grace_actor_id: string },
): Promise<void> {
  const { grace_id: to_account_id, grace_actor_id: actor_id } = at
  call.headers = at.ada
  await call.rpc('self_service_role_set', { role: 'reviewer', enabled: true })
  const offer = async (message: string): Promise<string> => {
    const params = { to_account_id, role: 'reviewer', message, expires_in_days: 30 }
    return (await call.rpc('role_grant_offer_create', params)).offer.offer_id
  }
  const retracted = await offer('Help us review?')
  await call.rpc('role_grant_offer_retract', { offer_id: retracted })
  const declined = await offer('Once more: help us review?')
  call.headers = at.grace
  await call.rpc('role_grant_offer_list', {})
  await call.rpc('role_grant_offer_decline', { offer_id: declined, reason: 'Not this month.' })
  call.headers = at.ada
  const accepted = await offer('And now?')
  call.headers = at.grace
  const { role_grant_id } = await call.rpc('role_grant_offer_accept', { offer_id: accepted })
  await call.rpc('role_grant_explain', { role_grant_id })
  await call.rpc('role_grant_offer_history', { limit: 1 })
  call.headers = at.ada
  await call.rpc('role_grant_revoke', { actor_id, role_grant_id, reason: 'Thank you.' })
  await call.rpc('role_grant_assign', { to_account_id, role: 'reviewer' })
  await call.rpc('role_holder_list', { role: 'admin' })
  await call.rpc('registry_list')
}

async function cells(call: Recorder, ada: Cookie, actor_id: string): Promise<void> {
  call.headers = ada
  const page = (label: string, path?: string): Promise<Answer> =>
    call.rpc('cell_create', { kind: 'page', data: { label, text: 'Hello.' }, ...(path && { path }) })
  const { cell } = await page('Welcome', 'wiki/welcome')
  const { cell: other } = await page('House rules')
  await call.rpc('cell_update', {
    cell_id: cell.id,
    data_patch: { text: 'Hello, all.' },
    expected_version: 1,
  })
  await call.rpc('cell_field_set', { source_id: cell.id, name: 'next_page', target_id: other.id })
  await call.rpc('cell_field_list', { source_id: cell.id })
  await call.rpc('cell_item_insert', { parent_id: cell.id, child_id: other.id, position: 'a0' })
  await call.rpc('cell_item_move', { parent_id: cell.id, position: 'a0', new_position: 'a1' })
  await call.rpc('cell_item_list', { parent_id: cell.id })
  await call.rpc('cell_get', { path: 'wiki/welcome' })
  await call.rpc('cell_list', { kind: 'page', limit: 1 })
  const shared = { cell_id: cell.id, level: 'viewer', principal: { kind: 'actor', actor_id } }
  const { grant } = await call.rpc('cell_grant_create', shared)
  await call.rpc('cell_grant_list', { cell_id: cell.id })
  await call.rpc('cell_access_explain', { cell_id: cell.id, actor_id })
  await call.rpc('cell_grant_revoke', { grant_id: grant.id })
  await call.rpc('cell_clone_preview', { source_id: cell.id, deep: true })
  await call.rpc('cell_clone', { source_id: cell.id, with_data_patch: { label: 'Welcome, copied' } })
  await call.rpc('cell_audit_list', { cell_id: cell.id })
  await call.rpc('cell_field_delete', { source_id: cell.id, name: 'next_page' })
  await call.rpc('cell_item_delete', { parent_id: cell.id, position: 'a1' })
  await call.rpc('cell_delete_preview', { cell_id: other.id })
  await call.rpc('cell_delete', { cell_id: other.id })
}

const times: Readonly<Record<string, string>> = {
  expires_at: '2026-02-01T09:00:00.000Z',
  updated_at: '2026-01-02T09:30:00.000Z',
}
const ofPasskeys = [
  ...['id', 'rawId', 'passkey_id', 'challenge', 'userHandle', 'signature'],
  ...['clientDataJSON', 'attestationObject', 'authenticatorData'],
]
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** What differs between runs of the same story. */
const measured: Readonly<Record<string, number>> = { requests: 4711, open: 3, idle: 2, waiting: 0 }

/** Grants of the same moment are ordered by their random ids. */
const byRole = (a: { role: string }, b: { role: string }): number => (a.role < b.role ? -1 : 1)

/** Replaces what differs from run to run; equal values stay equal, and forms stay valid. */
const totpSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

function mask(examples: Examples): Examples {
  const fixed = new Map<string, string>()
  const stable = (value: string, make: (nth: number) => string): string => {
    const known = fixed.get(value) ?? make(fixed.size + 1)
    fixed.set(value, known)
    return known
  }
  const hex = (nth: number, length: number): string => nth.toString(16).padStart(length, '0')
  const text = (given: string, key: string): string => {
    const value = given.replace(/^(http:\/\/)?localhost(:4040)?/, '$1app.example').replace(/^http:/, 'https:')
    if (uuid.test(value)) return stable(value, (nth) => `00000000-0000-4000-8000-${hex(nth, 12)}`)
    if (time.test(value)) return times[key] ?? '2026-01-02T09:00:00.000Z'
    if (/^[0-9a-f]{64}$/.test(value)) return stable(value, (nth) => hex(nth, 64))
    if (/^tok_/.test(value)) return stable(value, (nth) => `tok_${hex(nth, 12)}`)
    const secret = /secret_svc_(token|ticket)_[\w-]{43}/
    if (secret.test(value)) return value.replace(secret, `secret_svc_$1_${'x'.repeat(43)}`)
    if (key === 'ip') return '203.0.113.7'
    if (/^[\w-]{40,}$/.test(value) && ofPasskeys.includes(key)) return 'AQIDBAUGBwgJ'
    if (key === 'node') return 'v26.0.0'
    if (key === 'version') return '1.0.0'
    if (key === 'url') return 'https://id.example/authorize?client_id=cellkeep&state=xxx'
    if (key === 'query' && value.startsWith('code=')) return 'code=xxx&state=xxx'
    if (key === 'token') return 'x'.repeat(43)
    if (key === 'secret') return totpSecret
    if (key === 'uri') return value.replace(/secret=\w+/, `secret=${totpSecret}`)
    if (key === 'code') return '123456'
    if (key === 'recovery_code' || key === 'recovery_codes') return '0123AB-4567CD-89ABEF-CDEFGH'
    return key === 'next_cursor' ? 'bmV4dC1wYWdl' : value
  }
  const walk = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return text(value, key)
    if (typeof value === 'number') return measured[key] ?? value
    if (key === 'role_grants' && Array.isArray(value))
      return value.toSorted(byRole).map((one) => walk(one, ''))
    if (Array.isArray(value)) return value.map((inner) => walk(inner, key))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [text(name, ''), walk(inner, name)]),
    )
  }
  return walk(examples, '') as Examples
}

if (import.meta.main) {
  await writeFile(examplesFile, await recordExamples())
  process.exit()
}
