import type { App } from '../core/app.ts'
import { type Route, rateLimitOf } from '../core/route.ts'
import { codeStatus } from '../error-codes.ts'
import { type BuiltinReason, catalogue, type Entry, type Reason } from '../reasons.ts'
import { Document } from '../wire/document.ts'
import { version } from '../wire/version.ts'
import examples from './examples.json' with { type: 'json' }
import { Schemas } from './json-schema.ts'
import { summaryOf } from './methods.ts'

/** The REST routes as OpenAPI 3.1; made on first use. */
export function openApi(app: App, routes: readonly Route[]): Document {
  const made = app.documents.get('openapi') ?? new Document(contentOf(app, routes))
  app.documents.set('openapi', made)
  return made
}

function contentOf(app: App, routes: readonly Route[]) {
  const schemas = new Schemas('draft-2020-12')
  const wired = routes.filter(({ enabled }) => !enabled || enabled(app))
  const paths = Object.fromEntries(
    wired.map((route) => [
      `${app.config.account_path}${route.path}`,
      { [route.method.toLowerCase()]: operationOf(route, app, schemas) },
    ]),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cellkeep account routes',
      version,
      description:
        'Sign-in by cookie. The methods are JSON-RPC: see `/api/openrpc.json`. Clients switch on `error`.',
    },
    paths,
    components: { schemas: schemas.shapes, securitySchemes },
  }
}

const securitySchemes = {
  session: { type: 'apiKey', in: 'cookie', name: 'svc_session' },
  api_token: { type: 'http', scheme: 'bearer', description: 'Not from browsers.' },
  daemon_token: { type: 'apiKey', in: 'header', name: 'X-Daemon-Token', description: 'Not from browsers.' },
}

function operationOf(route: Route, { config }: App, schemas: Schemas) {
  const { doc, path, method, auth, input, query } = route
  const types = auth.credential_types ?? Object.keys(securitySchemes)
  const { body, result } = exampleOf(route)
  const parameters = Object.entries(query ? (schemas.of(query, 'input').properties ?? {}) : {})
  return {
    operationId: path.slice(1).replaceAll('/', '_'),
    summary: summaryOf(doc),
    description: doc,
    ...(parameters.length > 0 && {
      parameters: parameters.map(([name, schema]) => ({ name, in: 'query', required: false, schema })),
    }),
    ...(input && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: schemas.of(input, 'input'), ...(body && { example: body }) },
        },
      },
    }),
    responses: {
      200: {
        description: route.output ? 'Done.' : 'Done; the body is empty.',
        ...(route.output && {
          content: {
            'application/json': {
              schema: schemas.of(route.output, 'output'),
              ...(result && { example: result }),
            },
          },
        }),
      },
      ...refusals(reasonsOfRoute(route)),
    },
    security: auth.account === 'none' ? [] : types.map((type) => ({ [type]: [] })),
    'x-rate-limit': route.rate_limit
      ? { axis: rateLimitOf(route, config) ?? null, ...route.rate_limit }
      : null,
    'x-auth': { ...auth, ...(auth.account !== 'none' && { required_scope: `surface:${path.slice(1)}` }) },
    'x-side-effects': method === 'POST',
  }
}

type Recorded = { body?: object; result?: object }
const recorded: Readonly<Record<string, Recorded>> = examples.routes
const exampleOf = ({ method, path }: Route): Recorded => recorded[`${method} ${path}`] ?? {}

/** What guards, query, body, limiters and database may answer, then the route's own reasons. */
function reasonsOfRoute(route: Route): Reason[] {
  const { auth, input, rate_limit, anyQuery, before_enrolment, errors = [] } = route
  const found: (Reason | false | undefined)[] = [
    'forbidden_origin',
    // Routes take no idempotency key.
    'invalid_request',
    auth.account === 'required' && 'authentication_required',
    auth.credential_types && 'credential_type_required',
    auth.account !== 'none' && 'token_scope_required',
    auth.account !== 'none' && !before_enrolment && 'second_factor_enrolment_required',
    !anyQuery && 'invalid_query_params',
    ...(input ? (['unsupported_media_type', 'invalid_json_body', 'invalid_request_body'] as const) : []),
    'payload_too_large',
    rate_limit && 'rate_limit_exceeded',
    'busy',
    'shutting_down',
    'service_unavailable',
    'timeout',
    'internal_error',
  ]
  const onRest = (reason: Reason): Reason => (reason === 'rate_limited' ? 'rate_limit_exceeded' : reason)
  return [...new Set([...found.filter((reason) => !!reason), ...errors.map(onRest)])] as Reason[]
}

/** One answer per status; its body names the reason. */
function refusals(reasons: readonly Reason[]) {
  const byStatus = new Map<number, Reason[]>()
  for (const reason of reasons) {
    const { code, status = codeStatus(code) }: Entry = catalogue[reason as BuiltinReason]
    byStatus.set(status, [...(byStatus.get(status) ?? []), reason])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, same]) => [
      status,
      {
        description: same
          .map((reason) => `\`${reason}\`: ${catalogue[reason as BuiltinReason].doc}`)
          .join('\n'),
        content: {
          'application/json': {
            schema: { type: 'object', required: ['error'], properties: { error: { enum: same } } },
          },
        },
      },
    ]),
  )
}
