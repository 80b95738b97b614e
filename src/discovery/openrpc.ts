import { AuditEvent } from '../audit/entry.ts'
import type { App } from '../core/app.ts'
import { type BuiltinReason, catalogue, type Reason } from '../reasons.ts'
import { Document } from '../wire/document.ts'
import { version } from '../wire/version.ts'
import examples from './examples.json' with { type: 'json' }
import { Schemas } from './json-schema.ts'
import { describeMethods, type MethodDescription } from './methods.ts'

/** Made on first use, because it takes some 50 ms and many services never need it. */
export function openRpc(app: App): Document {
  const made = app.documents.get('openrpc') ?? new Document(contentOf(app))
  app.documents.set('openrpc', made)
  return made
}

function contentOf(app: App) {
  const schemas = new Schemas('draft-7')
  const described = describeMethods(app, schemas)
  const reasons = [...new Set(described.flatMap((method) => method.reasons))].sort()
  return {
    openrpc: '1.3.2' as const,
    info: {
      title: 'Cellkeep',
      version,
      description:
        'Accounts, sessions, role grants, cells and an audit log. Clients switch on `error.data.reason`, and ignore keys of results that they do not know.',
    },
    methods: described.map(methodObject),
    components: {
      errors: Object.fromEntries(reasons.map((reason) => [reason, errorObject(app, reason as Reason)])),
      schemas: schemas.shapes,
    },
    'x-http-status': Object.fromEntries(reasons.map((reason) => [reason, app.fail(reason as Reason).status])),
    'x-notifications': [...app.registry.notifications.schemas].map(([name, params]) => ({
      name,
      params: schemas.of(params, 'output'),
    })),
    'x-audit-event': schemas.of(AuditEvent, 'output'),
  }
}

function methodObject({ name, summary, description, auth, reasons, ...described }: MethodDescription) {
  return {
    name,
    summary,
    description,
    paramStructure: 'by-name',
    params: Object.entries(described.input.properties ?? {}).map(([key, schema]) => ({
      name: key,
      ...(schema.description && { description: schema.description }),
      required: described.input.required?.includes(key) ?? false,
      schema,
    })),
    result: { name: 'result', schema: described.output },
    errors: reasons.map((reason) => ({ $ref: `#/components/errors/${reason}` })),
    ...exampleOf(name),
    'x-auth': auth,
    'x-side-effects': described.side_effects,
    'x-idempotency-key': described.idempotency,
    'x-rate-limit': described.rate_limit,
    'x-error-reasons': reasons,
  }
}

/** A consumer's reason has its text in the refusal itself. */
function errorObject({ fail }: App, reason: Reason) {
  const { code, text } = fail(reason)
  return { code, message: text ?? catalogue[reason as BuiltinReason].doc, data: { reason } }
}

const recorded: Readonly<Record<string, { params: Record<string, unknown>; result: unknown }>> =
  examples.methods

function exampleOf(name: string) {
  const example = Object.hasOwn(recorded, name) ? recorded[name] : undefined
  if (!example) return {}
  const params = Object.entries(example.params).map(([key, value]) => ({ name: key, value }))
  return { examples: [{ name, params, result: { name: 'result', value: example.result } }] }
}
