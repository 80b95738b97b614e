import { isUtf8 } from 'node:buffer'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { StartError } from '../errors.ts'
import type { Message } from '../registry/messages.ts'
import { localeForm } from '../wire/types.ts'
import { builtinTexts, type TextName } from './builtin-texts.ts'

type Template = { subject: string; text: string; html?: string }

/** The texts of a message, with its placeholders filled in. */
export type Texts = (message: Message) => Template

/**
 * The texts of messages: custom ones of `mail_templates` where they exist, by the locale of the message, else the
 * builtin ones. Rejects with a StartError (78) that lists what is wrong with the custom ones.
 */
export async function readTemplates(config: Config): Promise<Texts> {
  const { mail_templates: directory, site_name: site } = config
  const own = directory === null ? new Map<string, Template>() : await readOwn(directory)
  return (message) => {
    const name = nameOf(message)
    const template = fallbacks(name, message.locale).flatMap((key) => own.get(key) ?? [])[0] ?? builtin(name)
    const values = { site, ...shownValues(message) }
    return {
      subject: filled(template.subject, values),
      text: filled(template.text, values),
      ...(template.html !== undefined && { html: filled(template.html, values, escaped) }),
    }
  }
}

const nameOf = (message: Message): TextName =>
  message.purpose === 'notice' ? message.notice : message.purpose

/** `de-AT` falls back to `de`, then to the text without a locale. */
function fallbacks(name: TextName, locale: string): string[] {
  const parts = locale.toLowerCase().split('-')
  const locales = parts.map((_, at) => parts.slice(0, parts.length - at).join('-'))
  return [...locales.map((one) => `${name}.${one}`), name]
}

function shownValues(message: Message): Record<string, string> {
  const { username, link, expires_at, at } = message as Partial<Record<string, string>>
  const time = (text: string): string => `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`
  return {
    ...(username !== undefined && { username }),
    ...(link !== undefined && { link }),
    ...(expires_at !== undefined && { expires_at: time(expires_at) }),
    ...(at !== undefined && { at: time(at) }),
  }
}

const placeholder = /\{\{([^{}]*)\}\}/g

const filled = (text: string, values: Record<string, string>, write = (value: string) => value): string =>
  text.replace(placeholder, (_, name: string) => write(values[name.trim()] ?? ''))

const escaped = (text: string): string => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)

function builtin(name: TextName): Template {
  const [subject, text] = builtinTexts[name]
  const paragraphs = text
    .split('\n\n')
    .map((one) => (one === '{{link}}' ? '<a href="{{link}}">{{link}}</a>' : one.replaceAll('\n', '<br>')))
  return { subject, text, html: paragraphs.map((one) => `<p>${one}</p>`).join('\n') }
}

/** The placeholders that a text may contain; the text for a link must contain the link. */
const placeholders = (name: string): string[] => {
  if (name === 'test') return ['site']
  if (name === 'invite') return ['site', 'link', 'expires_at']
  return isLink(name) ? ['site', 'username', 'link', 'expires_at'] : ['site', 'username', 'at']
}
const isLink = (name: string): boolean => builtinTexts[name as TextName][1].includes('{{link}}')

const fileName = /^([a-z_]+)(\.[A-Za-z0-9-]+)?\.(txt|html)$/

const unknownText = 'does not have the name of a message'

async function readOwn(directory: string): Promise<Map<string, Template>> {
  const problems: string[] = []
  const unreadable = (path: string) => (error: NodeJS.ErrnoException) =>
    Promise.reject(broken([`${path} cannot be read (${error.code})`]))
  const files = new Map<string, string>()
  for (const file of (await readdir(directory).catch(unreadable(directory))).sort()) {
    // Kubernetes and file managers keep entries of their own beside the texts.
    if (file.startsWith('.')) continue
    const path = join(directory, file)
    const bytes = await readFile(path).catch(unreadable(path))
    if (!isUtf8(bytes)) problems.push(`${file} is not UTF-8`)
    // Drops the byte order mark that some editors write at the start of a file.
    files.set(file, new TextDecoder().decode(bytes))
  }
  const own = new Map<string, Template>()
  for (const [file, content] of files) {
    const [, name = '', locale = '', kind] = fileName.exec(file) ?? []
    if (!Object.hasOwn(builtinTexts, name)) problems.push(`${file} ${unknownText}`)
    else problems.push(...flaws(name, content, kind === 'txt').map((flaw) => `${file} ${flaw}`))
    // No message has such a locale, so the text would never be used.
    if (locale !== '' && !localeForm.test(locale.slice(1)))
      problems.push(`${file} has a locale that is not like de or de-AT`)
    if (kind === 'html' && !files.has(file.replace(/html$/, 'txt')))
      problems.push(`${file} needs a .txt of the same name with the subject`)
    if (kind !== 'txt') continue
    const [first = '', ...lines] = content.split(/\r?\n/)
    const html = files.get(file.replace(/txt$/, 'html'))
    own.set(name + locale.toLowerCase(), {
      subject: first.replace(/^Subject: */, ''),
      text: lines.join('\n').trim(),
      ...(html !== undefined && { html }),
    })
  }
  if (problems.some((problem) => problem.endsWith(unknownText)))
    problems.push(`The name of a file must be that of a message: ${Object.keys(builtinTexts).join(', ')}`)
  if (problems.length > 0) throw broken(problems)
  return own
}

const usedIn = (content: string): string[] =>
  [...content.matchAll(placeholder)].map(([, word = '']) => word.trim())

function flaws(name: string, content: string, isText: boolean): string[] {
  const unknown = usedIn(content).filter((word) => !placeholders(name).includes(word))
  // A link in the subject does not count, because nobody can press it.
  const body = content.replace(/^Subject:.*/, '')
  return [
    ...(isText && !/^Subject: *\S/.test(content) ? ['must begin with a line like "Subject: Welcome"'] : []),
    ...unknown.map((word) => `has {{${word}}}, which is not one of ${placeholders(name).join(', ')}`),
    ...(isLink(name) && !usedIn(body).includes('link') ? ['lacks {{link}}'] : []),
  ]
}

const broken = (problems: readonly string[]): StartError =>
  new StartError(
    'configuration',
    ['The templates in CELLKEEP_MAIL_TEMPLATES (option mail_templates) cannot be used:', ...problems].join(
      '\n  ',
    ),
    78,
  )
