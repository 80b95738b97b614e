import { isIPv4 } from 'node:net'

/** IP addresses and networks as text; pure functions, so that the configuration can check them. */

/**
 * The canonical form of an address: dotted IPv4, RFC 5952 for IPv6, and IPv4 for an IPv4-mapped address. Undefined
 * for anything else, including an address with a zone, port or brackets.
 */
export function canonicalIp(text: string): string | undefined {
  if (isIPv4(text)) return text
  const address = canonicalIpv6(text)
  return address && (mappedIpv4(address) ?? address)
}

/** The canonical address of a peer. That of a link-local one may carry a zone, which has no meaning outside this host. */
export const peerIp = (text: string): string | undefined => canonicalIp(text.split('%', 1)[0] as string)

/** The canonical form of an address that the code of an embedder passes: Node calls a peer over IPv4 `::ffff:…`. */
export function givenIp(ip: string): string {
  const address = peerIp(String(ip))
  if (address === undefined)
    throw new TypeError(`\`ip\` must be one IP address, without a port; "${ip}" is none.`)
  return address
}

/** The RFC 5952 form of an IPv6 address; undefined for anything else and for an address with a zone. */
export function canonicalIpv6(text: string): string | undefined {
  // Not isIPv6: its first call in a process compiles a pattern for 15 ms.
  const url = /^[\da-f:.]+$/i.test(text) ? URL.parse(`http://[${text}]/`) : null
  return url?.hostname.slice(1, -1)
}

/** The eight 16-bit words of an IPv6 address; undefined for anything else and for an address with a zone. */
export function ipv6Words(text: string): number[] | undefined {
  const [head, tail] = canonicalIpv6(text)?.split('::') ?? []
  if (head === undefined) return undefined
  const first = wordsOf(head)
  if (tail === undefined) return first
  const last = wordsOf(tail)
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

/** The canonical address of eight words. */
export const formatIpv6 = (words: readonly number[]): string =>
  canonicalIpv6(words.map((word) => word.toString(16)).join(':')) as string

type Network = { family: 'ipv4' | 'ipv6'; address: string; prefix: number }

/** Parses an address or CIDR network without host bits into canonical form; a string is the rule that it breaks. */
export function parseNetwork(entry: string): Network | string {
  const [text = '', prefixText, ...more] = entry.split('/')
  const address = canonicalIp(text)
  if (address === undefined || more.length > 0) return 'must be an IP address or a CIDR network'
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const bits = family === 'ipv4' ? 32 : 128
  const mappedBits = family === 'ipv4' && text.includes(':') ? 96 : 0
  if (prefixText === undefined) return { family, address, prefix: bits }
  const prefix = /^(0|[1-9]\d{0,2})$/.test(prefixText) ? Number(prefixText) - mappedBits : -1
  if (prefix < 0 || prefix > bits) {
    return `must have a prefix length from ${mappedBits} to ${bits + mappedBits}`
  }
  const hostBits = (1n << BigInt(bits - prefix)) - 1n
  if ((numeric(address) & hostBits) !== 0n) return 'must not have host bits set below its prefix length'
  return { family, address, prefix }
}

/** The rule that a network breaks, as "must …"; undefined for a valid one. */
export function checkNetwork(entry: string): string | undefined {
  const parsed = parseNetwork(entry)
  return typeof parsed === 'string' ? parsed : undefined
}

/** True for `localhost`, `127.0.0.0/8` and `::1` in any notation: such a listener is reachable from this host only. */
export function isLoopbackHost(host: string): boolean {
  const address = canonicalIp(host)
  if (address === undefined) return host.toLowerCase() === 'localhost'
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'))
}

/** Whether nobody on the network can read what is sent to a URL: https, or http that stays on this machine. */
export const isSafeUrl = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname.replace(/^\[|\]$/g, '')))

/**
 * The URL of a listener, without a trailing slash; `host` is a name or an address without brackets, of which only those
 * of IPv6 have a colon.
 */
export const httpUrl = (host: string, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`

function numeric(address: string): bigint {
  if (isIPv4(address)) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
  return (ipv6Words(address) ?? []).reduce((sum, word) => (sum << 16n) | BigInt(word), 0n)
}

/**
 * The single host behind an address of a transition mechanism; undefined for any other address. That is the IPv4
 * address embedded by NAT64 (64:ff9b::/96, or a /96 of the local 64:ff9b:1::/48), 6to4 (2002::/16) or Teredo
 * (2001::/32, inverted). Other forms within the local NAT64 prefix return the whole address.
 */
export function hostBehind(words: readonly number[]): string | undefined {
  const [first, second = 0, third = 0, fourth, fifth, sixth, high = 0, low = 0] = words
  if (first === 0x2002) return dotted(second, third)
  if (first === 0x2001 && second === 0) return dotted(high ^ 0xffff, low ^ 0xffff)
  if (first !== 0x64 || second !== 0xff9b) return undefined
  const hasZeros = fifth === 0 && sixth === 0
  if (third === 0) return hasZeros && fourth === 0 ? dotted(high, low) : undefined
  if (third !== 1) return undefined
  return hasZeros ? dotted(high, low) : formatIpv6(words)
}

const dotted = (high: number, low: number): string => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`

/** The IPv4 address of a canonical IPv4-mapped one (::ffff:0:0/96). */
function mappedIpv4(address: string): string | undefined {
  const [, high, low] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(address) ?? []
  return high && low && dotted(Number.parseInt(high, 16), Number.parseInt(low, 16))
}

const wordsOf = (part: string): number[] =>
  part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16))
