/** Mistakes that must not compile, each on the line below its note. */
import { createService, defineConfig, mutation, query } from 'cellkeep'
import { createClient } from 'cellkeep/client'
import { z } from 'zod'
import { page_lock, type Wiki } from './wiki.ts'

const required = { account: 'required', actor: 'required' } as const
const declared = { doc: '', auth: required, output: z.null() } as const
const nothing = async () => null

// @ts-expect-error a misspelled hook
defineConfig({ hooks: { validatData: (_kind: string | null, data: object) => data } })
// @ts-expect-error a hook that is not a function
defineConfig({ hooks: { authorizeCreate: 7 } })
// @ts-expect-error a misspelled hook of the library
void createService({ hooks: { authoriseCreate: () => true } })
// @ts-expect-error an unknown declaration
defineConfig({ rolez: [] })
// @ts-expect-error an unknown key of a role
defineConfig({ roles: [{ name: 'x', grant_paths: [], grant_path: [] }] })
// @ts-expect-error a role without grant paths
defineConfig({ roles: [{ name: 'x' }] })
// @ts-expect-error a method that query() did not make
defineConfig({ actions: { mine: { doc: 'x' } } })
// @ts-expect-error a reason without a status
defineConfig({ reasons: { page_locked: { message: 'x' } } })
// @ts-expect-error a notification without a schema
defineConfig({ notifications: { draft_changed: null } })
// @ts-expect-error metadata that is not a schema
defineConfig({ audit_events: { page_lock: {} } })
// @ts-expect-error a hook with more parameters than it is given
defineConfig({ authorize_offer: (_offer, more) => more })

// @ts-expect-error an unknown key of a method
query({ ...declared, rate_limits: 'account', handler: nothing })
// @ts-expect-error no output
query({ doc: '', auth: required, handler: nothing })
// @ts-expect-error an axis misspelled
query({ ...declared, auth: { account: 'requird', actor: 'none' }, handler: nothing })
// @ts-expect-error an unknown key of auth
query({ ...declared, auth: { ...required, rols: ['admin'] }, handler: nothing })
const scoped = {
  doc: '',
  input: z.strictObject({ id: z.uuid(), n: z.int() }),
  output: z.null(),
  handler: nothing,
}
// @ts-expect-error a key that the input does not have
query({ ...scoped, auth: { ...required, roles: [{ role: 'x', in: (it) => it.nothing }] } })
// @ts-expect-error a scope that is not a string
query({ ...scoped, auth: { ...required, roles: [{ role: 'x', in: (it) => it.n }] } })
// @ts-expect-error a role without its scope
query({ ...scoped, auth: { ...required, roles: [{ role: 'x' }] } })
// @ts-expect-error a reason that is not declared
query({ ...declared, errors: ['page_lockt'], handler: nothing })
// @ts-expect-error a reason that is not listed
query({ ...declared, handler: async (_input, { fail }) => Promise.reject(fail('page_locked')) })
// @ts-expect-error a query has no audit
query({ ...declared, handler: async (_input, { audit }) => audit })
// @ts-expect-error an event that is not declared
mutation({ ...declared, event: 'page_lok', handler: nothing })

mutation({
  ...declared,
  event: 'page_lock',
  async handler(_input, { audit, notify }) {
    // @ts-expect-error metadata of another event
    audit('page_lock', { page: 'x' })
    // @ts-expect-error an unknown notification
    notify('id', 'draft_chnged', {})
    // @ts-expect-error params of another notification
    notify('id', 'draft_changed', { id: 'x' })
    return null
  },
})

const client = createClient<Wiki>({ url: '' })
// @ts-expect-error an input without its scope
void client.page_lock({ page_id: 'x' })
const outcome = await client.try.page_lock({ page_id: 'x', workspace_id: 'x' })
// @ts-expect-error no such reason
if (!outcome.ok && outcome.error.reason === 'page_lokced') throw outcome.error

export { page_lock }
