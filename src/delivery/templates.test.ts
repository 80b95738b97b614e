import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { resolveOptions } from '../config/config.ts'
import type { Message } from '../registry/messages.ts'
import { builtinTexts } from './builtin-texts.ts'
import { readTemplates } from './templates.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ck-texts-'))
})
afterEach(() => rm(directory, { recursive: true }))

const texts = (files: Record<string, string> = {}, site_name = 'Töpferei & Co') => {
  const options = { data_dir: directory, site_name, mail_templates: directory }
  const written = Object.entries(files).map(([name, text]) => writeFile(join(directory, name), text))
  return Promise.all(written).then(() => readTemplates(resolveOptions(options).config))
}
const reset: Message = {
  ...{ id: 'id', to: 'ada@x.io', locale: 'de-AT', purpose: 'password_reset', username: 'ada' },
  ...{ link: 'https://app.example/link?a=1&b=2#ticket=t', expires_at: '2030-01-31T12:34:56.000Z' },
}

it('every message has a text that is filled in completely', async () => {
  const write = await texts()
  const common = { id: 'id', to: 'ada@x.io', locale: 'en' }
  const link = 'https://app.example/link#ticket=t'
  for (const name of Object.keys(builtinTexts)) {
    const isLink = ['password_reset', 'email_verify', 'email_change', 'invite'].includes(name)
    const message = (
      name === 'test'
        ? { ...common, purpose: name }
        : isLink
          ? {
              ...common,
              purpose: name,
              ...(name !== 'invite' && { username: 'ada' }),
              link,
              expires_at: '2030-01-31T12:34:56.000Z',
            }
          : { ...common, purpose: 'notice', notice: name, username: 'ada', at: '2030-01-31T12:34:56.000Z' }
    ) as Message
    const { subject, text, html = '' } = write(message)
    for (const written of [subject, text, html])
      expect([name, written]).not.toEqual([name, expect.stringMatching(/[{}]|undefined/)])
    expect(subject).not.toContain('ada')
    if (isLink) for (const written of [text, html]) expect(written).toContain(link)
    expect(html).not.toMatch(/src=|<img|<link|<script/)
  }
})

it('what is filled in is escaped in HTML, and only there', async () => {
  const { subject, text, html } = (await texts())({ ...reset, username: '<b>ada</b>' } as Message)
  expect(subject).toContain('Töpferei & Co')
  expect(text).toContain('<b>ada</b>')
  expect(text).toContain('until 2030-01-31 12:34 UTC')
  expect(html).not.toContain('<b>')
  expect(html).toContain('href="https://app.example/link?a=1&#38;b=2#ticket=t"')
})

it('own texts go by locale, then by the default, then come the builtin ones', async () => {
  const write = await texts({
    'password_reset.txt': 'Subject: Hello\n\n{{link}}\n',
    'password_reset.de.txt': 'Subject: Hallo von {{site}}\r\n\r\nServus {{ username }}: {{link}}\r\n',
    'password_reset.de.html': '<p>{{username}} {{link}}</p>',
  })
  expect(write(reset)).toEqual({
    subject: 'Hallo von Töpferei & Co',
    text: `Servus ada: ${(reset as { link: string }).link}`,
    html: `<p>ada https://app.example/link?a=1&#38;b=2#ticket=t</p>`,
  })
  expect(write({ ...reset, locale: 'DE' }).subject).toBe('Hallo von Töpferei & Co')
  expect(write({ ...reset, locale: 'fr-CA' })).toEqual({
    subject: 'Hello',
    text: (reset as { link: string }).link,
  })
  expect(write({ id: 'id', to: 'a@x.io', locale: 'de', purpose: 'test' }).text).toContain('test message')
})

it('own texts may begin with the byte order mark that some editors write', async () => {
  const write = await texts({
    'test.txt': '\ufeffSubject: Hello\n\nThere',
    'test.html': '\ufeff<p>There</p>',
  })
  const message: Message = { id: 'id', to: 'a@x.io', locale: 'en', purpose: 'test' }
  expect(write(message)).toEqual({ subject: 'Hello', text: 'There', html: '<p>There</p>' })
})

it('own texts may be the files of a ConfigMap, which lie in a hidden directory', async () => {
  await mkdir(join(directory, '..2030_01_31'))
  await writeFile(join(directory, '..2030_01_31', 'test.txt'), 'Subject: Hello\n\nThere')
  await symlink('..2030_01_31', join(directory, '..data'))
  await symlink('..data/test.txt', join(directory, 'test.txt'))
  const message: Message = { id: 'id', to: 'a@x.io', locale: 'en', purpose: 'test' }
  expect((await texts())(message)).toEqual({ subject: 'Hello', text: 'There' })
})

it('a directory among own texts is named', async () => {
  await mkdir(join(directory, 'drafts'))
  await expect(texts()).rejects.toThrow(`${join(directory, 'drafts')} cannot be read (EISDIR)`)
})

it('own texts in another encoding than UTF-8 are refused, because people would read replacement characters', async () => {
  await writeFile(join(directory, 'test.txt'), 'Subject: Grüße', 'latin1')
  await expect(texts()).rejects.toThrow('test.txt is not UTF-8')
})

it('everything that is wrong with own texts is said at once', async () => {
  const failed = texts({
    'password_reset.txt': 'Subject: x {{link}}\n\nno link',
    'email_verify.txt': 'no subject {{link}}',
    'invite.txt': 'Subject: x\n{{link}} {{username}} {{token}}',
    'test.german.txt': 'Subject: x',
    'test.html': '<p>x</p>',
    'welcome.txt': 'Subject: x\n',
    'README.md': 'x',
  })
  await expect(failed).rejects.toMatchObject({ exitCode: 78 })
  const { message } = await failed.then(
    () => expect.unreachable(),
    (error: Error) => error,
  )
  expect(
    message
      .split('\n')
      .slice(1)
      .map((line) => line.trim()),
  ).toEqual([
    'README.md does not have the name of a message',
    'email_verify.txt must begin with a line like "Subject: Welcome"',
    'invite.txt has {{username}}, which is not one of site, link, expires_at',
    'invite.txt has {{token}}, which is not one of site, link, expires_at',
    'password_reset.txt lacks {{link}}',
    'test.german.txt has a locale that is not like de or de-AT',
    'test.html needs a .txt of the same name with the subject',
    'welcome.txt does not have the name of a message',
    expect.stringMatching(/^The name of a file must be that of a message: password_reset, .*, link_removed$/),
  ])
})
