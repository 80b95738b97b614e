import type { LoadResult } from './load.ts'
import type { World } from './measure.ts'

/** One kind of load: the requests, the number of connections, and the bar against the floor. */
export type Workload = {
  name: string
  requests: string[]
  connections: number
  /** Instead of the requests, for what is more than independent requests over HTTP. */
  drive?(port: number, seconds: number): Promise<LoadResult>
  /** Happens before each slice, and counts for none. */
  first?(port: number): Promise<void>
  /** Min share of the floor's requests per second, and max ratio to its p99. */
  bar?: { rate: number; p99: number }
}

const connections = 64

/** An HTTP request as text, keep-alive. */
export function request(method: string, path: string, cookie?: string, body?: object): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n${text}`
}

export const rpc = (method: string, cookie: string | undefined, params?: object): string =>
  request('POST', '/api/rpc', cookie, { jsonrpc: '2.0', id: 1, method, ...(params && { params }) })

/** The next reader of the log numbers all rows written since the last one, which would be half of a slice. */
export const numbering = (admin: string) => async (port: number) => {
  const answer = await fetch(`http://127.0.0.1:${port}/api/rpc?method=audit_log_list&id=1`, {
    headers: { cookie: admin },
  })
  if (!answer.ok) throw new Error(`audit_log_list answered ${answer.status}.`)
}

/** Accounts of the smallest world whose index is above all that have a cookie, including the bystanders. */
const loggingIn = Array.from({ length: 300 }, (_, index) => 700 + index)

/** The workloads, each over many sessions. */
export function workloads({ cookies, admin, visible, own }: World, password: string): Workload[] {
  const each = (make: (cookie: string, index: number) => string): string[] => cookies.map(make)
  const data = { label: 'A note', text: 'Some words that a person might keep. '.repeat(8) }
  const some = visible.slice(0, 50)
  // Separate cells, so that what is compared with others is read without the edges that a workload has set.
  const read = own.filter((_, index) => index % 2 === 0)
  const written = own.filter((_, index) => index % 2 === 1)
  // Each cell twice, a round apart, so that every call changes something.
  const twice = (make: (one: World['own'][number], round: string) => string): string[] =>
    ['a', 'b'].flatMap((round) => written.map((one) => make(one, round)))
  const plain = (name: string, requests: string[]): Workload => ({ name, requests, connections })
  return [
    plain(
      'GET /verify',
      each((c) => request('GET', '/api/account/verify', c)),
    ),
    {
      ...plain(
        'account_verify',
        each((c) => rpc('account_verify', c)),
      ),
      bar: { rate: 0.45, p99: 6 },
    },
    plain(
      'cell_get',
      each((c, index) => rpc('cell_get', c, { id: visible[index % visible.length] })),
    ),
    plain(
      'cell_get own',
      read.map(({ cookie, id }) => rpc('cell_get', cookie, { id })),
    ),
    plain(
      'cell_get anonymous',
      visible.map((id) => rpc('cell_get', undefined, { id })),
    ),
    plain(
      'cell_list',
      each((c) => rpc('cell_list', c, {})),
    ),
    plain(
      'cell_list own',
      read.map(({ cookie, actor_id }) => rpc('cell_list', cookie, { created_by: actor_id })),
    ),
    plain(
      'cell_create',
      each((c) => rpc('cell_create', c, { kind: 'note', data })),
    ),
    plain(
      'cell_update',
      twice(({ cookie, id }, round) => rpc('cell_update', cookie, { cell_id: id, data_patch: { round } })),
    ),
    plain(
      'cell_field_set',
      twice(({ cookie, id }, round) =>
        rpc('cell_field_set', cookie, {
          source_id: id,
          name: 'next',
          target_id: visible[round === 'a' ? 0 : 1],
        }),
      ),
    ),
    plain(
      'cell_get with a field',
      written.map(({ cookie, id }) => rpc('cell_get', cookie, { id })),
    ),
    { ...plain('audit_log_list', [rpc('audit_log_list', admin, {})]), first: numbering(admin) },
    {
      name: 'batch of 50 cell_get',
      requests: each((c) =>
        request(
          'POST',
          '/api/rpc',
          c,
          some.map((id, at) => ({ jsonrpc: '2.0', id: at, method: 'cell_get', params: { id } })),
        ),
      ),
      connections: 8,
    },
    {
      name: 'login',
      // Logs in other accounts: the cap on sessions would end the sessions of the cookies.
      requests: loggingIn.map((index) =>
        request('POST', '/api/account/login', undefined, { username: `user${index}`, password }),
      ),
      connections: 8,
    },
  ]
}

/** The response of the floor: the same bytes that account_verify gets. */
export const floorWorkload = (cookies: readonly string[]): Workload => ({
  name: 'floor',
  requests: cookies.map((cookie) => rpc('account_verify', cookie)),
  connections,
})

/** What one client requests while others log in: a probe of the event loop, and a call with a credential. */
export const probes = (cookies: readonly string[]) => ({
  live: { name: 'probe', requests: [request('GET', '/health/live')], connections: 1 },
  verify: {
    name: 'account_verify, alone',
    requests: cookies.map((cookie) => rpc('account_verify', cookie)),
    connections: 1,
  },
})
