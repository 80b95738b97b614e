import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { SMTPServer } from 'smtp-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { page, reverseProxy } from '../../../test/helpers/reverse-proxy.ts'
import { type Said, shell } from '../../../test/helpers/shell.ts'
import { codeOf, guarded } from '../../../test/helpers/totp.ts'
import { query } from '../../core/declare.ts'
import { type TestAccount, type TestService, testService } from '../../testing/index.ts'
import { execute } from '../main.ts'

const note_labels = query({
  doc: 'A method of a consumer.',
  auth: { account: 'none', actor: 'none' },
  output: z.null(),
  handler: async () => null,
})

let test: TestService
let home: string
let admin: TestAccount
let cellkeep: (args: readonly string[], input?: string) => Promise<Said>
beforeAll(async () => {
  test = await testService({ audit_stream: true, actions: { note_labels } })
  home = await mkdtemp(join(tmpdir(), 'ck-remote-'))
  admin = await test.account({ roles: ['admin'] })
  cellkeep = shell({ HOME: home, CELLKEEP_URL: test.url }, home)
})
afterAll(async () => {
  await test.close()
  await rm(home, { recursive: true })
})

const credentials = () => join(home, '.config', 'cellkeep', 'credentials.json')

describe('login', () => {
  it.each(['null', '[]', '{'])('names a file of tokens that holds %s', async (content) => {
    const place = join(home, 'broken', 'cellkeep')
    await mkdir(place, { recursive: true, mode: 0o700 })
    await writeFile(join(place, 'credentials.json'), content, { mode: 0o600 })
    const env = { XDG_CONFIG_HOME: join(home, 'broken'), CELLKEEP_URL: test.url }
    const { code, stderr } = await shell(env, home)(['logout'])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/credentials\.json .*Delete it and run/)])
  })

  it('that could not keep a token makes none, and names the file', async () => {
    const ada = await test.account()
    await writeFile(join(home, 'file'), '')
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, 'file'), CELLKEEP_URL: test.url }
    const { code, stderr } = await shell(env, home)(['login', '--username', ada.username], ada.password)
    expect([code, stderr]).toEqual([1, expect.stringContaining('credentials.json cannot be')])
    expect(stderr).not.toContain('bug')
    expect((await ada.client.account_token_list()).tokens).toEqual([])
  })

  it('that is refused leaves no file behind', async () => {
    const env = { XDG_CONFIG_HOME: join(home, 'unused'), CELLKEEP_URL: test.url }
    const { code } = await shell(env, home)(['login', '--username', 'nobody'], 'a wrong password')
    expect([code, await readdir(join(home, 'unused', 'cellkeep'))]).toEqual([1, []])
  })

  it('keeps a token for its owner alone and leaves no session behind', async () => {
    const ada = await test.account()
    const before = await ada.client.account_session_list()
    const { code, stdout } = await cellkeep(
      ['login', '--username', ada.username, '--days', '7'],
      ada.password,
    )
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining(`Signed in to ${test.url} as ${ada.username}`),
    ])
    expect((await stat(credentials())).mode & 0o777).toBe(0o600)
    expect(await readFile(credentials(), 'utf8')).not.toContain(ada.password)
    expect(JSON.parse((await cellkeep(['call', 'account_verify', '--json'])).stdout)).toMatchObject({
      id: ada.id,
    })
    expect((await ada.client.account_session_list()).sessions.length).toBe(before.sessions.length)
    const { tokens } = await ada.client.account_token_list()
    expect(tokens).toHaveLength(1)
    expect(Date.parse(tokens[0]?.expires_at ?? '') - Date.now()).toBeLessThanOrEqual(7 * 86_400_000)
  })

  it('with a wrong password keeps the stored token', async () => {
    const before = await readFile(credentials(), 'utf8')
    const { code, stderr } = await cellkeep(['login', '--username', 'nobody'], 'a wrong password')
    expect([code, stderr]).toEqual([1, expect.stringMatching(/password/i)])
    expect(await readFile(credentials(), 'utf8')).toBe(before)
  })

  it('asks at a terminal for the code of a second factor, and elsewhere says what is missing', async () => {
    const ada = await guarded(test)
    const piped = await cellkeep(['login', '--username', ada.username], ada.password)
    expect([piped.code, piped.stderr]).toEqual([1, expect.stringContaining('second factor')])
    const answers = { Password: ada.password, Code: codeOf(ada.secret) }
    expect(await typing(answers, 'login', '--username', ada.username)).toEqual([
      0,
      expect.stringContaining(`Signed in to ${test.url} as ${ada.username}`),
    ])
  })

  it('ends if nothing is typed', async () => {
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    stdin.end()
    let screen = ''
    const out = { write: (text: string) => (screen += text) }
    const io = { stdin, stdout: out, stderr: out, env: { HOME: home, CELLKEEP_URL: test.url }, cwd: home }
    expect([await execute(['login'], io), screen]).toEqual([1, expect.stringContaining('Interrupted')])
  })

  it('logout forgets it', async () => {
    const { code: left, stdout } = await cellkeep(['logout', '--json'])
    expect([left, JSON.parse(stdout)]).toMatchObject([0, { forgotten: true, revoked: false }])
    expect((await cellkeep(['logout'])).stdout).toContain('No token is kept')
    const { code, stderr } = await cellkeep(['call', 'account_verify'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('cellkeep login')])
  })

  it('logout ends it if the password is typed, and else says that it lives on', async () => {
    const ada = await test.account()
    const left = async () => (await ada.client.account_token_list()).tokens.map(({ id }) => id)
    for (const password of ['', 'a wrong password', ada.password]) {
      await cellkeep(['login', '--username', ada.username], ada.password)
      const [newest] = await left()
      const [code, screen] = await typing({ Password: password }, 'logout')
      const isRight = password === ada.password
      const said = isRight ? 'The token is revoked.' : `cellkeep token revoke ${newest}`
      expect([code, screen]).toEqual([0, expect.stringContaining(said)])
      expect((await left()).includes(newest as string)).toBe(!isRight)
    }
    expect((await ada.client.account_session_list()).sessions).toHaveLength(1)
  })
})

/** Runs a command at a terminal; each prompt, known by its first word, gets its answer. */
async function typing(answers: Record<string, string>, ...args: string[]): Promise<[number, string]> {
  const typed = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => typed })
  let screen = ''
  const stderr = {
    write: (text: string) => {
      screen += text
      const answer = answers[text.split(' ', 1)[0] as string]
      if (answer !== undefined) setImmediate(() => typed.write(`${answer}\r`))
    },
  }
  const env = { HOME: home, CELLKEEP_URL: test.url }
  return [await execute(args, { stdin: typed, stdout: stderr, stderr, env, cwd: home }), screen]
}

const onlyTokenOf = async ({ client }: TestAccount): Promise<string> =>
  (await client.account_token_list()).tokens[0]?.id as string

describe('call', () => {
  type Scope = Parameters<TestAccount['client']['account_token_create']>[0]['scope']
  const as = async (account: TestAccount, scope: Scope = { kind: 'full' }) => {
    const { token } = await account.client.account_token_create({
      scope,
      lifetime: { kind: 'ttl', days: 1 },
    })
    return shell({ HOME: home, CELLKEEP_URL: `${test.url}/`, CELLKEEP_TOKEN: token }, home)
  }

  it('takes JSON, pairs and standard input', async () => {
    const run = await as(admin)
    const made = [
      await run(['call', 'cell_create', '{"kind": "note", "data": {"label": "one"}}', '--json']),
      await run(['call', 'cell_create', 'kind=note', 'data={"label": "two"}', '--json']),
      await run(['call', 'cell_create', '-', '--json'], '{"kind": "note", "data": {"label": "three"}}'),
    ]
    expect(made.map(({ stdout, stderr }) => stderr || JSON.parse(stdout).cell.data.label)).toEqual([
      'one',
      'two',
      'three',
    ])
    const { stdout } = await run(['call', 'cell_list', 'kind=note'])
    expect(stdout).toMatch(/^\{\n {2}"/)
    expect(JSON.parse(stdout).cells).toHaveLength(3)
  })

  it('escapes what would control the terminal, and prints the same JSON', async () => {
    const run = await as(admin)
    const label = 'a\u009b2Jb\u007fc\u202ed\u{e0001}e'
    const { cell } = await admin.client.cell_create({ kind: 'hostile', data: { label } })
    const { stdout } = await run(['call', 'cell_get', `id=${cell.id}`])
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(JSON.parse(stdout).cell.data.label).toBe(label)
  })

  it('prints a refusal in words, or as JSON', async () => {
    const run = await as(admin)
    const id = '00000000-0000-7000-8000-000000000000'
    const text = await run(['call', 'cell_get', `id=${id}`])
    expect([text.code, text.stdout, text.stderr]).toEqual([1, '', expect.stringMatching(/^[A-Z].*\.\n/)])
    const json = await run(['call', 'cell_get', `id=${id}`, '--json'])
    expect(JSON.parse(json.stderr)).toMatchObject({ reason: 'cell_not_found' })
    const scoped = await (await as(admin, { kind: 'read_only' }))(['call', 'cell_create', '--json'])
    expect(JSON.parse(scoped.stderr)).toMatchObject({ reason: 'token_scope_required' })
  })

  it.each([
    [['call', 'cell_get', 'id'], 2, /not a JSON object/],
    [['call'], 2, /^METHOD is missing/],
    [['call', 'cell_get', '--url', 'ftp://example.org'], 2, /not the URL/],
    [
      ['call', 'cell_get', '--url', 'http://ada:secret@127.0.0.1:1'],
      2,
      /^http:\/\/…@127.0.0.1:1 is not the URL/,
    ],
    [['call', 'cell_get', '--url', 'http://127.0.0.1:1'], 3, /No server answers/],
  ])('%j is told what is wrong', async (args, code, message) => {
    expect(await cellkeep(args)).toEqual({ code, stdout: '', stderr: expect.stringMatching(message) })
  })

  it('says what is wrong with TLS rather than that nothing answers', async () => {
    const plain = await cellkeep(['call', 'cell_list', '--url', test.url.replace('http:', 'https:')])
    expect([plain.code, plain.stderr]).toEqual([3, expect.stringMatching(/write http:\/\/ instead/)])
    const server = new SMTPServer({ secure: true }).on('error', () => {})
    await new Promise<void>((listens) => server.listen(0, '127.0.0.1', listens))
    const { port } = server.server.address() as AddressInfo
    const unknown = await cellkeep(['call', 'cell_list', '--url', `https://127.0.0.1:${port}`])
    await new Promise<void>((closed) => server.close(closed))
    expect([unknown.code, unknown.stderr]).toEqual([3, expect.stringMatching(/NODE_EXTRA_CA_CERTS/)])
    expect(unknown.stderr).not.toContain('No server answers')
  })

  it('says which method is unknown and what a refused call would have needed', async () => {
    const run = await as(admin, { kind: 'read_only' })
    const said = async (...words: string[]) => (await run(['call', ...words])).stderr
    expect(await said('cel_list')).toContain(
      'no method cel_list, or its feature is off; did you mean cell_list?',
    )
    expect(await said('note_lables')).toContain('did you mean note_labels?')
    for (const own of ['then', 'try', 'account'])
      expect(await run(['call', own])).toMatchObject({ code: 1, stderr: expect.stringContaining(own) })
    expect(await said('cell_create')).toContain('whose scope is full or names cell_create.')
    expect(await said('cell_create')).not.toContain('required_scope')
    const narrow = await as(admin, { kind: 'methods', methods: ['cell_get'] })
    expect((await narrow(['call', 'cell_list'])).stderr).toContain('is full, read_only or names cell_list.')
    expect(await said('account_token_create')).toContain('a credential of the type session.')
    const { stderr } = await cellkeep(['call', 'audit_log_list'])
    expect(stderr).toContain('cellkeep login')
  })

  it('refuses to call as nobody with a token that ended', async () => {
    const account = await test.account()
    const run = await as(account)
    expect((await run(['call', 'cell_list'])).code).toBe(0)
    await account.client.account_token_revoke({ token_id: await onlyTokenOf(account) })
    for (const command of [['call', 'cell_list'], ['tail']])
      expect(await run(command)).toEqual({
        ...{ code: 1, stdout: '' },
        stderr: expect.stringMatching(/^CELLKEEP_TOKEN was revoked, has expired .* unset it/),
      })
    expect(JSON.parse((await run(['call', 'cell_list', '--json'])).stderr)).toMatchObject({
      reason: 'authentication_required',
    })
  })

  it('tells that something else answers at the address', async () => {
    const { url, answer } = await reverseProxy(test.url)
    answer(page(502, '<html>502 Bad Gateway</html>'))
    const { code, stderr } = await cellkeep(['call', 'cell_list', '--url', url])
    expect([code, stderr]).toEqual([3, expect.stringMatching(/status 502\) is not Cellkeep/)])
  })
})

it('tail prints the rows after a position as they are written, until the process is told to stop', async () => {
  const { token } = await admin.client.account_token_create({
    scope: { kind: 'full' },
    lifetime: { kind: 'ttl', days: 1 },
  })
  const run = shell({ HOME: home, CELLKEEP_URL: test.url, CELLKEEP_TOKEN: token }, home)
  const seen = Promise.withResolvers<void>()
  let text = ''
  const running = run(['tail', '--after', '0', '--event-type', 'cell_delete'], '', (part) => {
    text += part
    seen.resolve()
  })
  const { cell } = await admin.client.cell_create({ data: {} })
  await admin.client.cell_delete({ cell_id: cell.id })
  await seen.promise
  process.emit('SIGINT')
  expect((await running).code).toBe(0)
  expect(text).toMatch(/^\d\d:\d\d:\d\d \d+ cell_delete .*cell=.*\n$/)
  expect(text).toContain(admin.actor_id)
})

it('tail says that a position lies beyond the end of the log', async () => {
  const { token } = await admin.client.account_token_create({
    scope: { kind: 'read_only' },
    lifetime: { kind: 'ttl', days: 1 },
  })
  const warned = Promise.withResolvers<string>()
  const running = execute(['tail', '--after', '9000'], {
    stdin: new PassThrough(),
    stdout: { write: () => {} },
    stderr: { write: (text) => warned.resolve(text) },
    env: { HOME: home, CELLKEEP_URL: test.url, CELLKEEP_TOKEN: token },
    cwd: home,
  })
  expect(await warned.promise).toMatch(/^The log ends at row \d+, before row 9000; new rows follow\.\n$/)
  process.emit('SIGINT')
  expect(await running).toBe(0)
})

it('tail without the credential of an admin says what to do', async () => {
  const { code, stderr } = await cellkeep(['tail'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('cellkeep login')])
  const { token } = await admin.client.account_token_create({
    scope: { kind: 'methods', methods: ['cell_list'] },
    lifetime: { kind: 'ttl', days: 1 },
  })
  const narrow = await shell({ HOME: home, CELLKEEP_URL: test.url, CELLKEEP_TOKEN: token }, home)(['tail'])
  expect(narrow).toMatchObject({ code: 1, stderr: expect.stringMatching(/name audit_log_list\.\n$/) })
})

it('tail says at once that no server answers', async () => {
  const { code, stderr } = await cellkeep(['tail', '--url', 'http://127.0.0.1:1'])
  expect([code, stderr]).toEqual([3, expect.stringContaining('No server answers')])
})

it('tail names the event that was probably meant', async () => {
  const said = async (type: string) =>
    (await cellkeep(['tail', '--event-type', type, '--url', 'http://127.0.0.1:1'])).stderr
  expect(await said('lgoin')).toContain('did you mean login?')
  for (const type of ['login', 'page_publish']) expect(await said(type)).not.toContain('did you mean')
})

describe('completion', () => {
  const complete = async (...words: string[]) =>
    (await cellkeep(['completion', 'words', '--', ...words])).stdout.split('\n').filter(Boolean)

  it('knows commands, their words and options', async () => {
    expect(await complete('acc')).toEqual(['account'])
    expect(await complete('account', 'sh')).toEqual(['show'])
    expect(await complete('invite', 'create', '--em')).toEqual(['--email'])
    expect(await complete('login', '--url', 'x', '--')).not.toContain('--url')
  })

  it('goes on after an option that asks for help', async () => {
    expect(await complete('invite', 'create', '--help', '--em')).toEqual(['--email'])
  })

  it('knows methods and their inputs', async () => {
    expect(await complete('call', 'cell_g')).toEqual([
      'cell_get',
      'cell_grant_create',
      'cell_grant_revoke',
      'cell_grant_list',
    ])
    expect(await complete('call', 'cell_get', 'i')).toEqual(['id='])
    expect(await complete('call', 'cell_get', 'id=3', 'i')).toEqual([])
  })

  it.each(['bash', 'zsh', 'fish'])('prints a script for %s', async (name) => {
    const { code, stdout } = await cellkeep(['completion', name])
    expect([code, stdout]).toEqual([0, expect.stringContaining('cellkeep completion words')])
  })
})

it('new refuses a place that is taken, or cannot be made, and says so', async () => {
  const { code, stdout } = await cellkeep(['new', 'notes'])
  expect([code, stdout]).toEqual([0, expect.stringContaining('npm install')])
  // Without `exec`, the shell between npm and the server would not pass signals on.
  expect(JSON.parse(await readFile(join(home, 'notes', 'package.json'), 'utf8'))).toMatchObject({
    name: 'notes',
    scripts: { start: 'exec cellkeep start' },
  })
  expect(await cellkeep(['new', 'notes'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('not empty'),
  })
  for (const path of ['notes/package.json', 'notes/package.json/below', '/proc/notes/below'])
    expect(await cellkeep(['new', path])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Name a new directory'),
    })
})
