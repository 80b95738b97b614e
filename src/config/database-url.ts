/** A server that a database URL names, with the URL of this server alone. */
type Server = { host: string; port: string | undefined; url: string }

type DatabaseUrl = {
  servers: readonly Server[]
  /** The servers are to be tried in random order. */
  isRandom: boolean
  /** `connect_timeout` of each attempt, in milliseconds. */
  attemptMs: number | undefined
}

const form = /^postgres(?:ql)?:\/\/((?:[^/?#]*@)?)([^@/?#]*)((?:\/[^?#]*)?)(?:\?([^#]*))?$/
/**
 * The parameters that the driver supports. Those for libpq only are refused, because the driver would silently ignore
 * them.
 */
const driverKeys =
  'sslmode sslrootcert sslcert sslkey uselibpqcompat application_name options host port'.split(' ')
const ownKeys: Readonly<Record<string, RegExp>> = {
  connect_timeout: /^\d{1,4}$/,
  target_session_attrs: /^(read-write|primary)$/,
  load_balance_hosts: /^(disable|random)$/,
}
/** The driver treats any other `sslmode`, even `allow`, as `verify-full`, and an empty one as `disable`. */
const rules: typeof ownKeys = {
  ...ownKeys,
  sslmode: /^(disable|prefer|require|verify-ca|verify-full|no-verify)$/,
}

const malformed = 'must be a postgres:// or postgresql:// URL with special characters percent-encoded'

/** Reads a URL in the forms of libpq, which may list several servers; or says what is wrong with it. */
export function parseDatabaseUrl(text: string): DatabaseUrl | string {
  const [matched, login = '', authority = '', path = '', query = ''] = form.exec(text) ?? []
  if (matched === undefined || !URL.canParse(`postgres://${login}h${path}`) || !isUtf8(login + path))
    return malformed
  const params = new URLSearchParams(query)
  // The tail of a password with a bare question mark, which no message may show.
  if ([...params.keys()].some((key) => key.includes('@'))) return malformed
  for (const [key, value] of params) {
    const rule = rules[key]
    if (!rule && !driverKeys.includes(key))
      return `has the key ${JSON.stringify(key.slice(0, 40))}: the keys are ${[...driverKeys, ...Object.keys(ownKeys)].join(', ')}`
    if (rule && !rule.test(value)) return `has a value of ${key} other than ${rule.source.slice(1, -1)}`
  }
  const found = hostsOf(authority, params)
  if (typeof found === 'string') return found
  const seconds = Number(params.get('connect_timeout') ?? 0)
  const isRandom = params.get('load_balance_hosts') === 'random'
  for (const key of [...Object.keys(ownKeys), 'host', 'port']) params.delete(key)
  return {
    servers: found.map(([host, port]) => {
      const own = new URLSearchParams([...params, ['host', host], ...(port ? [['port', port]] : [])])
      return { host, port, url: `postgres://${login}localhost${path}?${own}` }
    }),
    isRandom,
    attemptMs: seconds === 0 ? undefined : Math.max(2, seconds) * 1000,
  }
}

/** Other characters, as in `%E9`, the driver would refuse when it connects. It takes a `%` alone as it is. */
function isUtf8(encoded: string): boolean {
  try {
    decodeURIComponent(encoded.replaceAll(/%(?![0-9a-f]{2})/gi, '%25'))
    return true
  } catch {
    return false
  }
}

function hostsOf(authority: string, params: URLSearchParams): [string, string | undefined][] | string {
  const listed = authority.split(',').map((one) => /^(\[[0-9a-f:.]+\]|[^[\]:\s]*)(?::(\d*))?$/i.exec(one))
  if (listed.includes(null) || /%(?![0-7][0-9a-f])/i.test(authority))
    return 'has a host that is not a name or an address'
  const hosts =
    params.get('host')?.split(',') ??
    listed.map((one) => decodeURIComponent(one?.[1] ?? '').replace(/^\[|\]$/g, ''))
  const ports = params.get('port')?.split(',') ?? listed.map((one) => one?.[2])
  if (ports.length !== 1 && ports.length !== hosts.length) return 'must list as many ports as hosts, or one'
  if (ports.some((port) => port && (!/^\d+$/.test(port) || Number(port) > 65_535)))
    return 'has a port that is not a number up to 65535'
  return hosts.map((host, at) => [
    host || process.env.PGHOST || 'localhost',
    (ports.length === 1 ? ports[0] : ports[at]) || undefined,
  ])
}
