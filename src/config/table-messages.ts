import { isDeliverable } from '../wire/address.ts'
import { localeForm } from '../wire/types.ts'
import { httpUrl, isLoopbackHost, isSafeUrl } from './ip.ts'
import { checked, flag, matching, oneOf, orUnset, path, whole } from './kinds.ts'
import { setting } from './setting.ts'

/** The part of the table of settings (table.ts) about messages to people and the links in them. */

const origin = () =>
  checked(
    'an origin like https://app.example, without a path or a trailing slash; http only for a loopback host',
    (text) => {
      const url = URL.parse(text)
      return url !== null && isSafeUrl(url) && url.origin === text
    },
  )

const page = () =>
  checked(
    'an https URL (http for a loopback host) without user, query and fragment, with {purpose} at most once',
    (text) => {
      const url = URL.parse(text.replace('{purpose}', 'purpose'))
      return url !== null && isSafeUrl(url) && !/[?#@{}]/.test(text.replace('{purpose}', ''))
    },
  )

const redirect = () =>
  checked(
    'an https URL (http for a loopback host) without user, query, fragment and trailing slash',
    (text) => {
      const url = URL.parse(text)
      return url !== null && isSafeUrl(url) && !/[?#@]|\/$/.test(text)
    },
  )

/**
 * Whether the URL names a server and nothing else. A bare `#`, `?` or `%` in a password makes it another URL, or one
 * that cannot be decoded. A `%` in the host stands for a letter that no name in the DNS has.
 */
function isServer(url: URL | null): boolean {
  if (url === null || !/^\/?$/.test(url.pathname + url.search + url.hash)) return false
  if (url.hostname.includes('%') || url.port === '0') return false
  try {
    decodeURIComponent(`${url.username} ${url.password}`)
    return true
  } catch {
    return false
  }
}

const sender = () =>
  checked('an address like accounts@app.example or App <accounts@app.example>', (text) =>
    isDeliverable(senderOf(text).address),
  )

/** The name and address of `mail_from`. */
export function senderOf(text: string): { name: string; address: string } {
  const [, name = '', address = text] = /^([^<>"\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? []
  return { name: name.trimEnd(), address }
}

export const messages = {
  public_url: setting(orUnset(origin()), {
    default: ({ host, port }) => (isLoopbackHost(host) ? new URL(httpUrl(host, port)).origin : null),
    shown: 'loopback host: its own URL',
    doc: 'The URL at which people reach this service. Links are never built from request headers.',
  }),
  link_url: setting(orUnset(page()), {
    default: ({ public_url }) => (public_url === null ? null : `${public_url}/admin/link`),
    shown: '`<public url>/admin/link`; required without the console',
    doc: 'The page that links in messages lead to. `{purpose}` in it becomes the purpose of the link, and `#ticket=` with the token is added.',
  }),
  oidc_redirect_url: setting(orUnset(redirect()), {
    default: ({ public_url }) => (public_url === null ? null : `${public_url}/admin/callback`),
    shown: '`<public url>/admin/callback`; required with `CELLKEEP_CONSOLE=off`',
    doc: 'The page to which providers send the browser back, at `/<provider id>` below this URL. It posts its query to `/oidc_finish`.',
  }),
  site_name: setting(matching('1 to 60 characters without control characters', /^\P{Cc}{1,60}$/u), {
    default: 'Cellkeep',
    doc: 'The name of this service in messages.',
  }),
  smtp_url: setting(
    orUnset(
      checked(
        'a URL like smtps://user:password@mail.example or smtp://mail.example:587, special characters percent-encoded',
        (text) => /^smtps?:\/\/[^/]/.test(text) && isServer(URL.parse(text)),
      ),
    ),
    {
      default: null,
      shown: 'unset',
      secret: true,
      doc: 'The mail server. With `smtp:` STARTTLS is required, except on a loopback host.',
    },
  ),
  mail_from: setting(orUnset(sender()), {
    default: null,
    shown: 'unset',
    doc: 'The sender of messages.',
  }),
  mail: setting(oneOf('off', 'smtp', 'file', 'hook'), {
    default: ({ smtp_url, deliver }) =>
      deliver === undefined ? (smtp_url === null ? 'off' : 'smtp') : 'hook',
    shown: '`hook` with the option `deliver`, `smtp` with a mail server, else `off`',
    doc: 'How messages are delivered. `file` writes them to `<data dir>/mail`; only allowed in development or with a loopback host.',
  }),
  mail_templates: setting(orUnset(path('a readable directory')), {
    default: null,
    shown: 'unset',
    doc: 'A directory with your own texts of messages: `<purpose or notice>[.<locale>].txt` and `.html`.',
  }),
  mail_locale: setting(matching('a locale like en or de-AT', localeForm), {
    default: 'en',
    doc: 'The locale of messages for which the caller named none.',
  }),
  notices: setting(flag(), {
    default: true,
    doc: 'Mails people what changed in their account, if their e-mail is verified.',
  }),
  recovery: setting(flag(), {
    default: true,
    doc: 'The route that mails a link to reset a forgotten password.',
  }),
  reset_seconds: setting(whole(300, 86_400, 'seconds'), {
    default: 3600,
    doc: 'How long a link to reset a forgotten password works.',
  }),
  invite_claim: setting(oneOf('match', 'code', 'verified_email'), {
    default: ({ mail }) => (mail === 'off' ? 'match' : 'code'),
    shown: '`code` if messages are delivered, else `match`',
    doc: 'What a person needs to claim an invite. `match`: the e-mail, the username or both, whatever the invite names. `code`: also the token of its link. `verified_email`: also the token of a link that was mailed.',
  }),
}
