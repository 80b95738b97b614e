import { z } from 'zod'
import { flag, list, oneOf, whole } from './kinds.ts'
import { setting } from './setting.ts'

/** The part of the table of settings (table.ts) about ways to sign in and what they prove. */
export const signIn = {
  second_factor: setting(flag(), {
    default: true,
    doc: 'People may add a second factor (TOTP). Off: no new ones; those that exist are still asked for.',
  }),
  require_second_factor: setting(list('a comma list of roles', z.array(z.string())), {
    default: [],
    shown: 'none',
    doc: 'Roles whose holders need a second factor: with a session or API token that lacks one they reach only what enrols it.',
  }),
  fresh_seconds: setting(whole(60, 86_400), {
    default: 600,
    doc: 'How long after proving who they are people may call what needs a fresh session.',
  }),
  step_up: setting(oneOf('new', 'all'), {
    default: 'new',
    doc: '`all`: making a token of scope `full` and deleting one’s own account need a fresh session too.',
  }),
}
