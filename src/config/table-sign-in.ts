import { z } from 'zod'
import { entry, flag, list, matching, oneOf, orUnset, whole } from './kinds.ts'
import { checkOrigin, domainOf, passkeyFaults, rpIdForm } from './passkeys.ts'
import { setting } from './setting.ts'

/** The part of the table of settings (table.ts) about ways to sign in and what they prove. */
export const signIn = {
  second_factor: setting(flag(), {
    default: true,
    doc: 'Lets people add a second factor (TOTP). Off: nobody can add one, but existing ones are still asked for.',
  }),
  require_second_factor: setting(list('a comma-separated list of roles', z.array(z.string())), {
    default: [],
    shown: 'none',
    doc: 'Roles whose holders need a second factor. With a session or API token that was not proven by one, they can only add one, change the password, and list and end sessions.',
  }),
  fresh_seconds: setting(whole(60, 86_400), {
    default: 600,
    doc: 'How long a session counts as fresh after people have proven who they are; some calls need a fresh session.',
  }),
  step_up: setting(oneOf('new', 'all'), {
    default: 'new',
    doc: '`all`: making a token of scope `full` and deleting one’s own account need a fresh session too.',
  }),
  rp_id: setting(orUnset(matching('a domain name like app.example, or localhost', rpIdForm)), {
    default: ({ public_url }) => domainOf(public_url),
    shown: 'the host of the public URL, if it is a domain name',
    doc: 'The domain that passkeys belong to: the host of the public URL, or a domain of yours above it. If it changes, the passkeys of the former domain stop working.',
  }),
  passkey_origins: setting(
    list('a comma-separated list of origins like https://app.example', z.array(entry(checkOrigin))),
    {
      default: ({ public_url }) => (public_url === null ? [] : [public_url]),
      shown: 'the public URL',
      doc: 'Origins of the pages that sign people in with passkeys, exactly as browsers send them.',
    },
  ),
  passkeys: setting(flag(), {
    default: (known) => passkeyFaults(known, (key) => key).length === 0,
    shown:
      'true if `CELLKEEP_PUBLIC_URL` is https with a domain name, or http://localhost, and the package is installed',
    doc: 'Sign-in with passkeys.',
  }),
}
