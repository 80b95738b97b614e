import { domainToASCII, domainToUnicode } from 'node:url'

/** Letters and marks of any script, digits, and the signs that need no quoting. */
const deliverable =
  /^[\p{L}\p{M}\p{Nd}!#$%&'*+/=?^_{}~.-]{1,64}@([\p{L}\p{M}\p{Nd}-]+(?:\.[\p{L}\p{M}\p{Nd}-]+)+)$/u

/**
 * Whether mail is ever sent to an address. Excludes addresses that would reach another mailbox: texts that mail
 * programs read as a list, a name or a comment, such as `a,b@c.d` and `foo<x@y.zz>`; and domains that become another
 * name on the way.
 */
export function isDeliverable(address: string): boolean {
  const domain = deliverable.exec(address)?.[1]
  if (domain === undefined) return false
  // The conversion replaces full width letters and ligatures, drops invisible marks and completes short IP addresses:
  // the result is somebody else's domain.
  const [ascii, written] = [domainToASCII(domain), lowerCase(domain)]
  return ascii === written || domainToUnicode(ascii) === written
}

/** With its domain in the form of the DNS: `a@münchen.example` and `a@xn--mnchen-3ya.example` are one mailbox. */
export function withAsciiDomain(address: string): string {
  const at = address.lastIndexOf('@') + 1
  return address.slice(0, at) + domainToASCII(address.slice(at))
}

/** Letter by letter, as for a name in the DNS: no letter depends on its neighbours. */
const lowerCase = (domain: string): string =>
  Array.from(domain.normalize('NFC'), (letter) => letter.toLowerCase())
    .join('')
    .normalize('NFC')
