import { mkdtemp, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { outbox, settled, tokenOf } from '../../test/helpers/outbox.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { shell } from '../../test/helpers/shell.ts'
import { sql } from '../db/db.ts'
import { createSealing } from '../sealing/sealing.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const cwd = await mkdtemp(join(tmpdir(), 'ck-mail-'))
afterAll(() => rm(cwd, { recursive: true }))
const data_dir = join(cwd, 'data')
const [secret, newer] = ['test-secret-test-secret-test-secret-1', 'another-secret-another-secret-anoth-2']
const test = await serviceForFile({ mail: 'file', data_dir, secret_keys: [secret] })
const env = {
  CELLKEEP_DATABASE_URL: test.databaseUrl,
  CELLKEEP_DATA_DIR: data_dir,
  CELLKEEP_SECRET_KEYS: secret,
  CELLKEEP_MAIL: 'file',
}
const cellkeep = shell(env, cwd)
const run = async (words: string, on = cellkeep) => {
  const { code, stdout, stderr } = await on(words.split(' '))
  expect([words, code, stderr]).toEqual([words, 0, ''])
  return stdout
}
const json = async (words: string, on = cellkeep): Promise<Record<string, unknown>> =>
  JSON.parse((await run(`${words} --json`, on)).split('\n')[0] as string)

let ada: TestAccount
beforeEach(async () => {
  await test.reset()
  ada = await test.account({ username: 'ada', email: 'ada@x.io' })
})

const password = 'an entirely new password'
const reset = (link: string) => send(test, 'POST /reset', { body: { token: tokenOf(link), password } })

it('without a mail server messages are files, which the command shows', async () => {
  await send(test, 'POST /recover', { body: { identifier: 'ada' } })
  const [row] = await settled(test)
  expect(row).toMatchObject({ state: 'sent', link_sealed: null })
  const file = join(data_dir, 'mail', `${row?.id}.json`)
  expect((await stat(file)).mode & 0o7777).toBe(0o600)
  const shown = await run(`mail show ${row?.id}`)
  expect(shown).toContain('ada@x.io')
  const [link = ''] = /http\S+#ticket=\S+/.exec(shown) ?? []
  expect((await reset(link)).status).toBe(200)
  for (const broken of ['{', 'null']) {
    await writeFile(file, broken)
    expect(await cellkeep(['mail', 'show', `${row?.id}`])).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: `${file} is not a JSON object. \`cellkeep mail list\` shows the messages of the last days.\n`,
    })
  }
  // Old ones are deleted when the next one is written.
  const old = new Date(Date.now() - 8 * 86_400_000)
  await utimes(file, old, old)
  await run('mail test someone@x.io')
  expect(await readdir(join(data_dir, 'mail'))).not.toContain(`${row?.id}.json`)
})

it('a reset link is printed once, or sent', async () => {
  const { link, ticket } = (await json('account reset-link ada')) as { link: string; ticket: { id: string } }
  expect((await run('account reset-link ada')).trim()).toMatch(/^http\S+#ticket=secret_svc_ticket_[\w-]{43}$/)
  expect(await run('ticket list ada --open')).toContain(ticket.id)
  expect((await reset(link)).status).toBe(200)
  expect(await run('account reset-link ada --send')).toContain('A link was sent to ada')
  test.service.app.outbox.wake()
  expect(await settled(test)).toContainEqual(
    expect.objectContaining({ purpose: 'password_reset', state: 'sent' }),
  )
  const { tickets } = await test.service.operations.listTickets({ open_only: true })
  expect(await run(`ticket revoke ${tickets[0]?.id}`)).toContain('no longer works')
  expect(await run(`ticket revoke ${tickets[0]?.id}`)).toContain('no such open link')
})

it('whether a link is open is told by the clock of the database', async () => {
  await run('account reset-link ada')
  const ahead = Date.now() + 8 * 86_400_000
  const machine = vi.spyOn(Date, 'now').mockReturnValue(ahead)
  onTestFinished(() => machine.mockRestore())
  expect(await run('ticket list ada')).toMatch(/ open$/m)
})

it('a keeper gets a link from the operator, and no other way', async () => {
  await test.roleGrant({ actor_id: ada.actor_id, role: 'keeper' })
  const { link } = (await json('account reset-link ada')) as { link: string }
  expect((await reset(link)).status).toBe(200)
})

it('an account is secured', async () => {
  const { link } = (await json('account secure ada --yes')) as { link: string }
  await expect(ada.client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
  expect((await reset(link)).status).toBe(200)
})

it('invites are made and sent', async () => {
  const made = (await json('invite create --email new@x.io --no-send')) as {
    invite_id?: string
    link: string
  }
  expect(made.link).toContain('#ticket=')
  const [invite] = (await test.service.operations.listInvites()).invites
  expect(await run(`invite send ${invite?.id}`)).toContain('new@x.io')
  expect((await run(`invite send ${invite?.id} --reveal`)).trim()).toContain('#ticket=')
})

it('a test message says how it went', async () => {
  expect(await run('mail test someone@x.io')).toMatch(/^Message \S+ was sent\./)
  const down = shell(
    { ...env, CELLKEEP_MAIL: 'smtp', CELLKEEP_SMTP_URL: 'smtp://127.0.0.1:1', CELLKEEP_MAIL_FROM: 'a@x.io' },
    cwd,
  )
  const unsent = await down(['mail', 'test', 'someone@x.io'])
  expect([unsent.code, unsent.stdout]).toEqual([
    1,
    expect.stringMatching(/was not sent: unreachable\. .*\nCheck CELLKEEP_SMTP_URL/),
  ])
  const told = await down(['mail', 'test', 'someone@x.io', '--json'])
  expect([told.code, JSON.parse(told.stdout)]).toEqual([
    1,
    expect.objectContaining({ state: 'queued', error: 'unreachable' }),
  ])
  expect(await run('mail list --state sent')).toContain('test')
  const off = shell({ ...env, CELLKEEP_MAIL: 'off' }, cwd)
  const { code, stderr } = await off(['mail', 'test', 'someone@x.io'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('CELLKEEP_SMTP_URL')])
})

it('keys reseal seals anew what an older key has sealed, and leaves what no key opens', async () => {
  const { app } = test.service
  const seal = (row: string) =>
    app.sealing?.seal('JBSWY3DPEHPK3PXP', { table: 'account_totp', row, owner: ada.id })
  const [id, lost] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
  const bea = await test.account()
  await app.db.run(sql`
    insert into account_totp (id, account_id, secret_sealed, confirmed_at)
    values (${id}::uuid, ${ada.id}::uuid, ${seal(id)}, now()), (${lost}::uuid, ${bea.id}::uuid, 'v1.00000000.x.y', now())`)
  const rotated = shell({ ...env, CELLKEEP_SECRET_KEYS: `${newer},${secret}` }, cwd)
  expect(await json('keys reseal', rotated)).toEqual({ resealed: 1, left: 1 })
  expect(await json('keys reseal', rotated)).toEqual({ resealed: 0, left: 1 })
  await app.db.run(sql`delete from account_totp where id = ${lost}::uuid`)
  expect(await run('keys reseal', rotated)).toContain('The older keys are no longer needed')
  const [{ sealed } = expect.unreachable()] = await app.db.rows<{ sealed: string }>(sql`
    select secret_sealed as sealed from account_totp`)
  expect(sealed).not.toBe(seal(id))
  expect(app.sealing?.open(sealed, { table: 'account_totp', row: id, owner: ada.id })).toBeUndefined()
  expect(createSealing([newer]).open(sealed, { table: 'account_totp', row: id, owner: ada.id })).toBe(
    'JBSWY3DPEHPK3PXP',
  )
  // A service without the keys must not skip a second factor.
  await expect(testService({ database_url: test.databaseUrl, secret_keys: null })).rejects.toMatchObject({
    exitCode: 78,
    message: expect.stringContaining('CELLKEEP_SECRET_KEYS'),
  })
  expect(await outbox(test)).toEqual([])
})
