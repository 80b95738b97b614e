import { z } from 'zod'
import type { App } from '../core/app.ts'
import { query } from '../core/declare.ts'
import type { RoleSpec } from '../registry/registry.ts'

const Role = z.object({
  name: z.string(),
  description: z.string().nullable(),
  grant_paths: z.array(z.string()),
  required_credential_types: z.array(z.string()),
  /** Scope kinds at which the role can be held, besides globally. */
  scope_kinds: z.array(z.string()),
  self_service: z.boolean(),
})
const ScopeKind = z.object({ name: z.string(), description: z.string().nullable() })

/** Settings that bound what an account may have; null: without a bound. */
const caps = [
  'max_sessions',
  'max_tokens',
  'max_actors',
  'max_cell_edges',
  'max_account_cells',
  'max_account_bytes',
] as const
const Caps = z.object(
  Object.fromEntries(caps.map((name) => [name, z.int().nullable()])) as Record<
    (typeof caps)[number],
    z.ZodNullable<z.ZodInt>
  >,
)

export const registry_list = query({
  doc: 'The roles of this service, the kinds of scope in which they can be held, and the bounds per account.',
  auth: { account: 'required', actor: 'none' },
  output: z.object({ roles: z.array(Role), scope_kinds: z.array(ScopeKind), caps: Caps }),
  handler: async (_input, { app }) => ({
    roles: app.registry.roleNames.map((name) => describeRole(app, name)),
    scope_kinds: app.registry.scopeKinds.map(({ name, description = null }) => ({ name, description })),
    caps: Object.fromEntries(caps.map((name) => [name, app.config[name]])) as z.output<typeof Caps>,
  }),
})

function describeRole({ registry }: App, name: string): z.output<typeof Role> {
  const role = registry.role(name) as RoleSpec
  return {
    name,
    description: role.description ?? null,
    grant_paths: [...role.grant_paths],
    required_credential_types: [...(role.required_credential_types ?? [])],
    scope_kinds: [...registry.scopeKindsOf(role)],
    self_service: registry.selfService?.has(name) ?? false,
  }
}
