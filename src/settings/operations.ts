import type { z } from 'zod'
import type { App } from '../core/app.ts'
import { parseInput } from '../core/input.ts'
import { type Operator, operate } from '../core/operate.ts'
import { changeSettings, SettingsInput } from './app_settings_update.ts'
import { type AppSettings, readSettings } from './settings.ts'

/**
 * Settings by operator commands and library calls (contract 2, section 19); they work whether or not the
 * methods are enabled.
 */

export const getSettings = (app: App): Promise<AppSettings> => readSettings(app.db)

/** Resolves to the settings in force afterwards; rejects with `ServiceError`. */
export async function setSettings(
  app: App,
  input: z.input<typeof SettingsInput>,
  operator: Operator,
): Promise<AppSettings> {
  const { open_signup } = parseInput(SettingsInput, input)
  const updated_by = operator.actor_id ?? null
  return await operate(app, 'app_settings_update', operator, ({ db, audit, detail: { via } }) =>
    changeSettings(db, audit, { open_signup, updated_by }, { via }),
  )
}
