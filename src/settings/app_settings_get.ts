import { z } from 'zod'
import { query } from '../core/action.ts'
import { AppSettings, hasSettingsMethods, readSettings } from './settings.ts'

export const app_settings_get = query({
  doc: 'The settings of the application, and who changed them last.',
  auth: { role: 'admin' },
  enabled: hasSettingsMethods,
  output: z.object({ settings: AppSettings }),
  handler: async (_input, { db }) => ({ settings: await readSettings(db) }),
})
