import type { App } from '../core/app.ts'
import type { Deliver } from '../registry/messages.ts'
import { fileTransport } from './file.ts'
import { smtpTransport } from './smtp.ts'
import { readTemplates } from './templates.ts'

/** The transport that the settings name; undefined: nothing is delivered. Rejects with a StartError (78). */
export async function openTransport(app: Pick<App, 'config' | 'deliver'>): Promise<Deliver | undefined> {
  const { config } = app
  const texts = await readTemplates(config)
  if (config.mail === 'smtp') return await smtpTransport(config, texts)
  if (config.mail === 'file') return fileTransport(config, texts)
  return app.deliver
}
