/** What an application may declare, as its author would write it; `scripts/package-check.ts` compiles it. */
import type { IncomingMessage } from 'node:http'
import {
  type Actions,
  type AuditEvent,
  type Cell,
  CellDataIssues,
  type CellHooks,
  createServer,
  createService,
  defineConfig,
  type EventsOf,
  type InputOf,
  type Log,
  mutation,
  type NotificationsOf,
  type OutputOf,
  query,
  type ReasonOf,
  type ReasonsOf,
  type RoleSpec,
  recorded,
  type Service,
  sql,
} from 'cellkeep'
import { createClient } from 'cellkeep/client'
import { createLive } from 'cellkeep/client/live'
import { forRequest } from 'cellkeep/client/request'
import { retry } from 'cellkeep/client/retry'
import { scenario, testService } from 'cellkeep/testing'
import { z } from 'zod'

const page_id = z.uuid()
export const audit_events = { page_lock: z.strictObject({ page_id }), page_open: null }
export const reasons = { page_locked: { status: 409, message: 'Somebody edits this page.' } }
export const notifications = { draft_changed: z.strictObject({ page_id, by: z.string().optional() }) }

declare module 'cellkeep' {
  interface ConsumerEvents extends EventsOf<typeof audit_events> {}
  interface ConsumerReasons extends ReasonsOf<typeof reasons> {}
  interface ConsumerNotifications extends NotificationsOf<typeof notifications> {}
}

export const roles: readonly RoleSpec[] = [
  { name: 'reviewer', grant_paths: ['admin'], applicable_scope_kinds: ['workspace'] },
]

const Page = z.strictObject({ title: z.string().min(1), body: z.string() })
export const hooks: CellHooks = {
  authorizeCreate: (caller, { kind }) => kind !== 'page' || caller.is_admin,
  validateData(kind, data) {
    if (kind !== 'page') return data
    const { success, error, data: page } = Page.safeParse(data)
    if (!success) throw new CellDataIssues(error.issues)
    return page
  },
}

export const page_lock = mutation({
  doc: 'Locks a page.',
  auth: {
    account: 'required',
    actor: 'required',
    roles: ['admin', { role: 'reviewer', in: (input) => input.workspace_id }],
  },
  event: 'page_lock',
  input: z.strictObject({ workspace_id: z.uuid(), page_id, why: z.string().optional() }),
  output: z.object({ ok: z.literal(true) }),
  errors: ['page_locked', 'cell_not_found'],
  async handler({ page_id, why }, { db, audit, notify, fail, actor, account }) {
    const row = await db.first<{ owner: string }>(sql`select owner from page where id = ${page_id}`)
    if (!row) throw fail('cell_not_found')
    if (row.owner !== actor.id) throw recorded('page_lock', fail('page_locked', { why }), { page_id })
    audit('page_lock', { page_id })
    notify(account.id, 'draft_changed', { page_id, by: actor.name })
    notify({ actor_id: row.owner }, 'draft_changed', { page_id })
    return { ok: true as const }
  },
})

export const page_count = query({
  doc: 'How many pages there are.',
  auth: { role: 'reviewer' },
  output: z.object({ pages: z.int() }),
  handler: async (_input, { db }) =>
    (await db.first<{ pages: number }>(sql`select count(*)::int as pages from page`)) ?? { pages: 0 },
})

export const actions = { page_lock, page_count }
export type Wiki = Actions & typeof actions

export const config = defineConfig({
  roles,
  scope_kinds: [{ name: 'workspace' }],
  audit_events,
  reasons,
  notifications,
  hooks,
  actions,
  authorize_offer: async ({ role, grantor }) => role === 'reviewer' && grantor.role_grants.length > 0,
  self_service_roles: undefined,
  port: process.env.PORT === undefined ? undefined : Number(process.env.PORT),
})

export async function start(log: Log): Promise<Service> {
  const service = await createService({
    ...config,
    log,
    onStatement: undefined,
    check_outputs: undefined,
    database_url: process.env.DATABASE_URL,
    hooks: { ...hooks, validateData: (kind, data) => ({ ...data, of: kind satisfies string | null }) },
    actions: {
      ...actions,
      page_ping: query({
        doc: 'Inline, with everything inferred.',
        auth: { account: 'optional', actor: 'none' },
        input: z.strictObject({ n: z.int() }),
        output: z.int(),
        handler: async ({ n }, { account }) => n + (account?.username.length ?? 0),
      }),
    },
  })
  await service.transaction(
    { event: 'page_open', via: 'wiki', actor_id: undefined, snapshot: undefined },
    async ({ audit, notify }) => {
      audit('page_open', null)
      notify('id', 'draft_changed', { page_id: 'x' })
    },
  )
  return service
}

/** With the config file as its options, the service knows the methods that the file declares. */
export async function count(): Promise<number> {
  const service = await createService(config)
  const { pages } = await service.call('page_count', {})
  // @ts-expect-error no such method
  await service.call('page_cuont', {})
  return pages + (await service.call('cell_list', {})).cells.length
}

export async function use(
  url: string,
  locked: InputOf<typeof page_lock>,
): Promise<OutputOf<typeof page_lock>> {
  const client = createClient<Wiki>({ url })
  const outcome = await client.try.page_lock(locked)
  if (!outcome.ok && outcome.error.reason === 'page_locked') throw outcome.error
  // Not listed by any method, but any call may be refused with them.
  const { reason } = outcome.ok ? {} : outcome.error
  if (reason === 'busy' || reason === 'storage_full' || reason === 'shutting_down')
    throw new Error('Try later.')
  if (reason === 'fresh_authentication_required' || reason === 'method_not_found') throw new Error(reason)
  const { cell }: { cell: Cell } = await client.cell_create({ data: {} })
  const { events } = await client.audit_log_list({})
  const [first]: readonly AuditEvent[] = events
  const live = createLive<Wiki>({ url })
  live.on('draft_changed', ({ page_id, by }) => console.log(page_id, by ?? 'nobody', cell.id, first?.seq))
  const elsewhere = createLive<Wiki, { page_moved: { to: string } }>({ url })
  elsewhere.on('page_moved', ({ to }) => console.log(to))
  return await client.page_lock({ ...locked, acting: 'x' })
}

/** A route of a framework, which names the address of its visitor if it knows it. */
export async function route(
  service: Service,
  visitor: Pick<IncomingMessage, 'headers'> & { ip: string | undefined },
) {
  const { cells } = await service.call('cell_list', {}, { headers: visitor.headers, ip: visitor.ip })
  return cells
}

/** Under `exactOptionalPropertyTypes`, a key that may be left out may be undefined too. */
export async function withWhatIsKnown(
  service: Service,
  known: { name?: string; times?: number },
): Promise<void> {
  const { name, times } = known
  const client = createClient({ url: '', use: [retry({ times, deadline_ms: undefined })] })
  forRequest(client, new Request('http://localhost'), { address: name })
  createServer(service, { request: undefined, upgrade: undefined })
  const signal: AbortSignal | undefined = undefined
  await service.operations.importAccounts([], { via: 'wiki', source: 'old', signal, on_refused: undefined })
  await using test = await testService()
  const { id, actor_id } = await test.account({ username: name, email: name, roles: undefined })
  await test.signIn(id, { second_factor: undefined })
  await test.roleGrant({ actor_id, role: 'reviewer', scope_kind: name, scope_id: name })
  await scenario(test, () => client.cell_list(), { reason: name, audit: undefined })
}

const listed: ReasonOf<typeof page_lock> = 'page_locked'
console.log(listed)

export async function check(): Promise<void> {
  await using test = await testService<Wiki>({ ...config })
  const { client } = await test.account({ roles: ['reviewer'] })
  await scenario(test, () => client.page_count(), { audit: [], notify: [{ method: 'draft_changed' }] })
}
