import { z } from 'zod'
import { query } from '../core/declare.ts'
import { operation } from '../core/operation.ts'
import { AppSettings, describeSettings, hasSettingsMethods, readSettings } from './settings.ts'

export const app_settings_get = query({
  doc: 'The settings of the application, and who last changed them.',
  auth: { role: 'admin' },
  enabled: hasSettingsMethods,
  output: z.object({ settings: AppSettings }),
  handler: async (_input, { db }) => ({ settings: await readSettings(db) }),
})

/** Works whether or not the methods are enabled. */
export const getSettings = operation({
  doc: 'Show the settings that admins can change while the server runs.',
  handler: (_input, { app }) => readSettings(app.db),
  command: { name: 'settings get', phrase: describeSettings },
})
