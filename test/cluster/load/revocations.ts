import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { auditStream } from '../../../src/client/audit-stream.ts'
import { on } from '../../helpers/twins.ts'
import type { World } from '../world.ts'
import { outcomeOf } from './cells.ts'

/** Tokens and roles are given, used and taken away. Once they are taken away, no node may accept them; I5, I6. */
export function revocationLoad(world: World) {
  const { fleet, violate, carol, bob } = world
  const count = { revoked: 0, probes: 0, closings: [] as number[] }
  const accepted: string[] = []
  const ended: string[] = []

  /** Asks every node that serves; none may accept the call. */
  const refused = async (
    token: string,
    method: 'account_verify' | 'admin_account_list' | 'audit_log_list',
    what: string,
  ) => {
    const asked = fleet.nodes.filter(({ isUp }) => isUp)
    const answers = asked.map(async (node) => {
      const one = await world.client({ token, expects: [401, 403], node }).try[method]()
      count.probes += 1
      if (one.ok) violate('I5', `${node.name} took ${what} after it was revoked`)
    })
    await Promise.all(answers)
  }

  const token = async (): Promise<void> => {
    const made = await carol.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
    const held = await connections(world, made.token)
    await carol.account_token_revoke({ token_id: made.id })
    const revoked = performance.now()
    count.revoked += 1
    await refused(made.token, 'account_verify', 'a token')
    const bound = (): number =>
      (world.isCalm(revoked, performance.now()) ? 2_000 : 30_000) * world.options.slack
    while (held.open.size > 0 && performance.now() - revoked < bound()) await delay(20)
    if (held.open.size > 0) violate('I6', `${[...held.open]} outlived the token by ${bound()} ms`)
    else count.closings.push(performance.now() - revoked)
    held.close()
  }
  const role = async (): Promise<void> => {
    const admin = world.client({ token: world.adaToken, keyed: true })
    const other = world.client({ token: bob.token, keyed: true })
    const { offer } = await admin.role_grant_offer_create({ to_account_id: bob.account_id, role: 'admin' })
    const { role_grant_id } = await other.role_grant_offer_accept({ offer_id: offer.offer_id })
    accepted.push(offer.offer_id)
    await admin.role_grant_revoke({ actor_id: bob.actor_id, role_grant_id })
    ended.push(role_grant_id)
    count.revoked += 1
    await Promise.all([
      refused(bob.token, 'admin_account_list', 'a role'),
      refused(bob.token, 'audit_log_list', 'a role'),
    ])
  }
  for (const story of [token, role])
    world.loop(0.5, () =>
      story().catch((error) => {
        outcomeOf(error)
      }),
    )

  const check = async (): Promise<void> => {
    const [offers, grants] = [[...accepted], [...ended]]
    const rows = await on(
      world.engine.primary.url,
      `select id, source_offer_id, revoked_at is not null as is_revoked from cellkeep.role_grant`,
    )
    for (const offer of offers) {
      const found = rows.filter(({ source_offer_id }) => source_offer_id === offer).length
      if (found !== 1) violate(found > 1 ? 'I2' : 'I1', `the accepted offer ${offer} has ${found} grants`)
    }
    for (const grant of grants)
      if (!rows.some(({ id, is_revoked }) => id === grant && is_revoked))
        violate('I1', `the revocation of the grant ${grant} is lost`)
  }
  return {
    check,
    summary: () => ({
      ...{ revoked: count.revoked, probes: count.probes },
      slowest_closing_ms: Math.round(Math.max(0, ...count.closings)),
    }),
  }
}

/** A socket and a stream with this token, each on some node, if they can be opened. */
async function connections({ fleet, client }: World, token: string) {
  const open = new Set<string>()
  const [near, far] = [fleet.pick(), fleet.pick()]
  const names = { socket: `the socket on ${near.name}`, stream: `the stream of ${far.name}` }
  const socket = new WebSocket(`${near.url.replace('http', 'ws')}/api/ws`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const tried = new Promise<void>((resolve) => {
    socket.on('error', () => resolve())
    socket.on('open', () => {
      open.add(names.socket)
      resolve()
    })
    socket.on('close', () => {
      open.delete(names.socket)
      resolve()
    })
  })
  const abort = new AbortController()
  const followed = Promise.withResolvers<void>()
  const follow = async (): Promise<void> => {
    const to = client({ token, expects: [401], node: far })
    for await (const _ of auditStream(to, { signal: abort.signal, lost: () => abort.abort() })) {
      open.add(names.stream)
      followed.resolve()
    }
  }
  void follow()
    .catch(() => open.delete(names.stream))
    .finally(followed.resolve)
  await Promise.all([tried, Promise.race([followed.promise, delay(3_000)])])
  return {
    open,
    close: () => {
      abort.abort()
      socket.terminate()
    },
  }
}
