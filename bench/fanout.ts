import { join } from 'node:path'
import { account, bootstrap, fanOut, post, rpc, type Target } from './fan.ts'
import { short } from './numbers.ts'
import { ask, helper, product, type Started, temporary } from './processes.ts'
import { openReaders } from './socket-readers.ts'

/**
 * `npm run bench:fanout`: the time from a mutation to the last of many sockets of one account on one node,
 * compared with a bare broadcast by `ws`.
 */
const found = await fanOut({
  reader: 'socket',
  targets: async (started) => {
    const ours = await cellkeep(started)
    return [await bare(started, ours.message), ours]
  },
  open: openReaders,
})
const rate = (name: string): number => found.get(name)?.rate ?? Number.NaN
console.log(`deliveries: ${short(rate('cellkeep') / rate('bare ws'))} of bare ws; bar 0.5`)

async function bare(started: Started, message: string): Promise<Target> {
  const child = helper(started, 'socket-floor.ts')
  const port = await ask<number>(child)
  const publish = async () => void (await post(port, '/', message))
  return { name: 'bare ws', port, pid: child.pid as number, path: '/', cookie: '', publish }
}

/** The admin renews one offer repeatedly; the sockets belong to its recipient. */
async function cellkeep(started: Started): Promise<Target & { message: string }> {
  const dataDir = join(await temporary(started), 'data')
  const server = await product(started, dataDir, {
    CELLKEEP_WS_PER_ACCOUNT: '10000',
    CELLKEEP_LIMIT_ROLE_WRITE: 'off',
  })
  const { port } = server
  const call = (method: string, params: object, cookie: string) =>
    post(port, '/api/rpc', rpc(method, params), cookie)
  const admin = await bootstrap(port, dataDir)
  await call('app_settings_update', { open_signup: true }, admin.cookie)
  const reader = await account(port, 'signup', { username: 'reader' })
  const { result } = await call('account_verify', {}, reader.cookie)
  const offer = { to_account_id: result.id, role: 'admin', message: 'A role for you.' }
  const publish = async () => void (await call('role_grant_offer_create', offer, admin.cookie))
  const made = await call('role_grant_offer_create', offer, admin.cookie)
  const params = { offer: made.result.offer }
  const message = JSON.stringify({ jsonrpc: '2.0', method: 'role_grant_offer_received', params })
  return { name: 'cellkeep', ...server, path: '/api/ws', cookie: reader.cookie, publish, message }
}
