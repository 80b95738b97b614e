import { z } from 'zod'
import type { Audit } from '../audit/audit.ts'
import { mutation } from '../core/declare.ts'
import type { Via } from '../core/operate.ts'
import { operation } from '../core/operation.ts'
import { type Queryable, sql } from '../db/db.ts'
import { AppSettings, describeSettings, hasSettingsMethods, readSettings } from './settings.ts'

const SettingsInput = z.strictObject({ open_signup: z.boolean() })

export const app_settings_update = mutation({
  doc: 'Open or close signup without an invite. It applies from the next request on every node.',
  auth: { role: 'admin' },
  enabled: hasSettingsMethods,
  event: 'app_settings_update',
  rate_limit: 'account',
  rate_limit_group: 'admin_write',
  input: SettingsInput,
  output: z.object({ ok: z.literal(true), settings: AppSettings }),
  async handler({ open_signup }, { actor, db, audit }) {
    const settings = await changeSettings(db, audit, { open_signup, updated_by: actor.id })
    return { ok: true as const, settings }
  },
})

/** Writes the row. An unchanged value writes nothing and leaves no audit row. */
async function changeSettings(
  db: Queryable,
  audit: Audit,
  { open_signup, updated_by }: { open_signup: boolean; updated_by: string | null },
  via: Via = {},
): Promise<AppSettings> {
  const changed = await db.run(sql`
    update app_settings set open_signup = ${open_signup}, updated_at = now(), updated_by = ${updated_by}::uuid
    where id = 1 and open_signup is distinct from ${open_signup}`)
  if (changed > 0)
    audit('app_settings_update', {
      setting: 'open_signup',
      old_value: !open_signup,
      new_value: open_signup,
      ...via,
    })
  return await readSettings(db)
}

/** Returns the settings now in force. Works whether or not the methods are enabled. */
export const setSettings = operation({
  doc: 'Let everyone sign up, or only those who are invited. It applies from the next request on every server.',
  input: SettingsInput,
  event: 'app_settings_update',
  handler: ({ open_signup }, { db, audit, detail: { via }, by: updated_by }) =>
    changeSettings(db, audit, { open_signup, updated_by }, { via }),
  command: {
    name: 'settings set',
    args: { open_signup: 'open_signup (true|false)' },
    phrase: describeSettings,
  },
})
