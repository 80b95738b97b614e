import { z } from 'zod'
import type { Config } from '../config/config.ts'
import { type Queryable, sql } from '../db/db.ts'
import { Uuid } from '../wire/types.ts'

/** Wire form of the settings, which are one row. */
export const AppSettings = z.object({
  open_signup: z.boolean(),
  updated_at: z.string().nullable(),
  updated_by: Uuid.nullable(),
  updated_by_username: z.string().nullable(),
})
export type AppSettings = z.output<typeof AppSettings>

export const describeSettings = ({ open_signup, updated_at, updated_by_username }: AppSettings) => ({
  open_signup,
  changed: updated_at,
  'changed by': updated_by_username,
})

/** Whether the methods exist. Signup reads the row either way. */
export const hasSettingsMethods = ({ app_settings }: Config): boolean => app_settings

export const readSettings = (db: Pick<Queryable, 'one'>): Promise<AppSettings> =>
  db.one<AppSettings>(sql`
    select s.open_signup, s.updated_at, s.updated_by, account.username as updated_by_username
    from app_settings s left join actor on actor.id = s.updated_by
    left join account on account.id = actor.account_id
    where s.id = 1`)

/** Whether anyone may sign up. Read for every request and never cached; closed by default. */
export async function isSignupOpen(db: Pick<Queryable, 'first'>): Promise<boolean> {
  const row = await db.first<{ open_signup: boolean }>(sql`select open_signup from app_settings where id = 1`)
  return row?.open_signup === true
}
