import { entry } from '../copy/entry.ts'
import { server } from './server.ts'

const { password_min } = server

/** What this server requires of a new password, and what is wrong with one before it is sent. */
export const passwordHint = entry.password_hint(password_min)
export const passwordFault = (password: string): string | null =>
  [...password].length < password_min ? entry.password_short(password_min) : null
