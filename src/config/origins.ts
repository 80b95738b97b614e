import { isIPv4 } from 'node:net'
import { canonicalIpv6 } from './ip.ts'

export type OriginPattern = {
  scheme: 'http' | 'https'
  /** In lower case; labels may be `*`; an IPv6 host is canonical and in brackets. */
  host: string
  /** Undefined: no port. `*`: any port or none. Otherwise exactly this one. */
  port: string | undefined
}

const form = 'must be scheme://host[:port] with http or https'

/** Parses one pattern of the allow-list; a string is the rule that it breaks. */
export function parseOriginPattern(pattern: string): OriginPattern | string {
  const [, schemeText = '', rest = ''] = /^([a-z]+):\/\/(.*)$/is.exec(pattern) ?? []
  const scheme = schemeText.toLowerCase()
  if (scheme !== 'http' && scheme !== 'https') return form
  if (rest.includes('@')) return 'must have no user name or password'
  if (/[/?#\\]/.test(rest)) return 'must have no path, query or fragment, not even a trailing slash'
  const [, hostText, port] = /^(\[[^\]]*\]|[^:]*)(?::([^:]*))?$/s.exec(rest) ?? []
  if (hostText === undefined) return 'must have an IPv6 host in brackets'
  const host = hostText.startsWith('[') ? ipv6Host(hostText.slice(1, -1)) : namedHost(hostText)
  if (typeof host === 'string') return host
  if (port !== undefined && port !== '*' && !isPort(port)) {
    return 'must have a port from 1 to 65535 without leading zeros, or :*'
  }
  return { scheme, host: host.text, port }
}

/** The rule that a pattern breaks, as "must …"; undefined for a valid one. */
export function checkOriginPattern(pattern: string): string | undefined {
  const parsed = parseOriginPattern(pattern)
  return typeof parsed === 'string' ? parsed : undefined
}

/** The canonical bracketed host; undefined if the address is invalid. */
export function canonicalBracketed(address: string): string | undefined {
  const canonical = canonicalIpv6(address)
  return canonical && `[${canonical}]`
}

const isPort = (text: string): boolean => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535

function ipv6Host(address: string): { text: string } | string {
  const text = canonicalBracketed(address)
  return text === undefined ? 'must have a valid IPv6 address in brackets, no wildcard, no zone id' : { text }
}

function namedHost(host: string): { text: string } | string {
  const text = host.toLowerCase()
  // A trailing dot is valid and makes a different host; it does not add a label.
  const labels = text.replace(/(?<=.)\.$/, '').split('.')
  if (labels.some((label) => label !== '*' && label.includes('*'))) return 'may have * only as a whole label'
  if (labels.some((label) => /[^\0-\x7f]/.test(label)))
    return 'must have its host in ASCII (xn--…), as browsers send it'
  if (text.length > 253 || !labels.every((label) => label === '*' || /^[a-z0-9_-]{1,63}$/.test(label))) {
    return 'must have a valid host name'
  }
  const numeric = /^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')
  if (numeric && !labels.includes('*') && !isIPv4(text)) return 'must have its IPv4 address as four numbers'
  return { text }
}
