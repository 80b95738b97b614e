import { canonicalBracketed, type OriginPattern, parseOriginPattern } from '../config/origins.ts'
import { StartError } from '../errors.ts'

export { checkOriginPattern } from '../config/origins.ts'

/**
 * The origin allow-list as one test of an `Origin` header as received. Two
 * header lines arrive joined by a comma and match nothing, like an empty one and `null`.
 * Throws a configuration StartError for a bad pattern or none.
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

/** One whole DNS label. Beyond the dots, slashes and colons of the contract, what no host name can hold. */
const anyLabel = '[^./:,@\\s\\[\\]]+'

function matcher({ scheme, host, port }: OriginPattern): RegExp {
  const hostSource = host.replace(/[.[\]]/g, '\\$&').replaceAll('*', anyLabel)
  const portSource = port === undefined ? '' : port === '*' ? '(?::\\d{1,5})?' : `:${port}`
  // Without the u flag `i` folds ASCII only: no Kelvin sign passes for a k.
  return new RegExp(`^${scheme}://${hostSource}${portSource}$`, 'i')
}

/** The header with an IPv6 host in its one spelling; undefined when that host is no address. */
function canonicalised(origin: string): string | undefined {
  const [, before, address, after] = /^(https?:\/\/)\[([^\]]*)\](.*)$/i.exec(origin) ?? []
  if (address === undefined) return origin
  const host = canonicalBracketed(address)
  return host && `${before}${host}${after}`
}

const refused = (rule: string): StartError =>
  new StartError('configuration', `The list of allowed origins: ${rule}.`, 78)
