import { createClient } from 'cellkeep/client'
import { createLive } from 'cellkeep/client/live'
import type { Wiki } from './cellkeep.config.ts'

const url = process.env.CELLKEEP_URL ?? 'http://127.0.0.1:4040'
const [workspace_id = ''] = process.argv.slice(2)

async function signIn(username: string) {
  const client = createClient<Wiki>({ url, jar: true })
  await client.account.login({ username, password: 'correct horse battery' })
  return client
}
const ada = await signIn('ada')
const grace = await signIn('grace')

const { page_id } = await ada.page_create({ workspace_id, title: 'Welcome', body: 'Hello.' })
const live = createLive(ada)
const heard = new Promise((resolve) => live.on('page_changed', resolve))
await live.account_verify() // From here on the socket is open.

const { version } = await grace.page_lock({ page_id, locked: true })
const mine = await ada.try.page_edit({ page_id, body: 'Mine.', expected_version: version })
if (!mine.ok && mine.error.reason === 'page_locked') console.log('Ada has to wait.')
await grace.page_edit({ page_id, body: 'Hello, all.', expected_version: version })
console.log('Ada hears:', await heard)
await grace.page_lock({ page_id, locked: false })
live.close()
