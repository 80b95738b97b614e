import { canonicalBracketed, type OriginPattern, parseOriginPattern } from '../config/origins.ts'
import { StartError } from '../errors.ts'

/**
 * Compiles the origin allow-list to a test of an `Origin` header as received. Two header lines arrive joined by a comma
 * and match nothing; an empty one and `null` match nothing either. Throws a configuration StartError on a bad pattern
 * and on an empty list.
 */
export function compileOrigins(patterns: readonly string[]): (originHeader: string) => boolean {
  if (patterns.length === 0) throw refused('needs at least one pattern')
  const matchers = patterns.map((pattern, index) => {
    const parsed = parseOriginPattern(pattern)
    if (typeof parsed === 'string') throw refused(`entry ${index + 1} ${parsed}`)
    return matcher(parsed)
  })
  return (originHeader) => {
    const origin = canonicalised(originHeader)
    return origin !== undefined && matchers.some((expression) => expression.test(origin))
  }
}

/** A `*` stands for one whole DNS label, so it excludes separators and characters that no host name can contain. */
const anyLabel = '[^./:,@\\s\\[\\]]+'

function matcher({ scheme, host, port }: OriginPattern): RegExp {
  const hostSource = host.replace(/[.[\]]/g, '\\$&').replaceAll('*', anyLabel)
  const portSource = port === undefined ? '' : port === '*' ? '(?::\\d{1,5})?' : `:${port}`
  // Without the `u` flag, `i` folds ASCII only, so the Kelvin sign does not match a k.
  return new RegExp(`^${scheme}://${hostSource}${portSource}$`, 'i')
}

/** The header with an IPv6 host in canonical form; undefined when that host is not an address. */
function canonicalised(origin: string): string | undefined {
  const [, before, address, after] = /^(https?:\/\/)\[([^\]]*)\](.*)$/i.exec(origin) ?? []
  if (address === undefined) return origin
  const host = canonicalBracketed(address)
  return host && `${before}${host}${after}`
}

const refused = (rule: string): StartError =>
  new StartError('configuration', `The list of allowed origins: ${rule}.`, 78)
