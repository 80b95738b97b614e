/** Letters and marks of any script, digits, and the signs that need no quoting. */
const deliverable =
  /^[\p{L}\p{M}\p{Nd}!#$%&'*+/=?^_{}~.-]{1,64}@[\p{L}\p{M}\p{Nd}-]+(?:\.[\p{L}\p{M}\p{Nd}-]+)+$/u

/**
 * Whether mail is ever sent to an address. It leaves out what mail programs read as a list, a name or a comment, such
 * as `a,b@c.d` and `foo<x@y.zz>`: as text, those reach another mailbox.
 */
export const isDeliverable = (address: string): boolean => deliverable.test(address)
