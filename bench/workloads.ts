/** One kind of load: the requests, the number of connections, and the bar against the floor. */
export type Workload = {
  name: string
  requests: string[]
  connections: number
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

export const rpc = (method: string, cookie: string, params?: object): string =>
  request('POST', '/api/rpc', cookie, { jsonrpc: '2.0', id: 1, method, ...(params && { params }) })

/** Accounts of the smallest world whose index is above all that have a cookie, including the bystanders. */
const loggingIn = Array.from({ length: 300 }, (_, index) => 700 + index)

/** The workloads, each over many sessions: `cookies` of the accounts 0, 1, 2, …; `cells` are public. */
export function workloads(
  cookies: readonly string[],
  cells: readonly string[],
  password: string,
): Workload[] {
  const each = (make: (cookie: string, index: number) => string): string[] => cookies.map(make)
  const data = { label: 'A note', text: 'Some words that a person might keep. '.repeat(8) }
  return [
    { name: 'GET /verify', requests: each((c) => request('GET', '/api/account/verify', c)), connections },
    {
      name: 'account_verify',
      requests: each((c) => rpc('account_verify', c)),
      connections,
      bar: { rate: 0.45, p99: 6 },
    },
    {
      name: 'cell_get',
      requests: each((c, index) => rpc('cell_get', c, { id: cells[index % cells.length] })),
      connections,
    },
    { name: 'cell_list', requests: each((c) => rpc('cell_list', c, {})), connections },
    {
      name: 'cell_create',
      requests: each((c) => rpc('cell_create', c, { kind: 'note', data })),
      connections,
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
