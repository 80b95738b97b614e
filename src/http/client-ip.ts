import { BlockList } from 'node:net'
import { canonicalIp, parseNetwork, peerIp } from '../config/ip.ts'
import { StartError } from '../errors.ts'

/** True for the canonical address of a proxy whose `X-Forwarded-For` is trusted. */
export type TrustedProxies = (ip: string) => boolean

/**
 * The canonical address that a request came from. `forwarded` is all `X-Forwarded-For` lines, joined by commas;
 * `onIgnored` is called when a peer that is not trusted sent one. Throws when the socket has no address: the
 * request fails, since such clients must not share one key of the limiters.
 */
export function clientIp(
  socketAddress: string | undefined,
  forwarded: string | undefined,
  trusted: TrustedProxies,
  onIgnored?: () => void,
): string {
  const peer = peerIp(socketAddress ?? '')
  if (peer === undefined)
    throw new Error(
      socketAddress
        ? `The client address "${socketAddress}" is no IP address; service.fetch takes one, without a port, as { address }.`
        : 'The connection has no client address; service.fetch takes it as { address }.',
    )
  if (forwarded === undefined) return peer
  if (!trusted(peer)) {
    onIgnored?.()
    return peer
  }
  let leftmost: string | undefined
  for (const entry of forwarded.split(',').reverse()) {
    const ip = forwardedIp(entry)
    if (ip === undefined) continue
    if (!trusted(ip)) return ip
    leftmost = ip
  }
  return leftmost ?? peer
}

/** Compiles a list of addresses and CIDR networks; throws a configuration StartError on a bad entry. */
export function compileTrustedProxies(list: readonly string[]): TrustedProxies {
  // One list per family: BlockList would let ::/0 cover IPv4 too.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const [index, entry] of list.entries()) {
    const network = parseNetwork(entry)
    if (typeof network === 'string') {
      throw new StartError('configuration', `The list of trusted proxies: entry ${index + 1} ${network}.`, 78)
    }
    lists[network.family].addSubnet(network.address, network.prefix, network.family)
  }
  return (ip) => {
    const family = ip.includes(':') ? 'ipv6' : 'ipv4'
    return lists[family].check(ip, family)
  }
}

function forwardedIp(entry: string): string | undefined {
  const text = entry.trim()
  return /^[0-9a-fA-F.:]+$/.test(text) ? canonicalIp(text) : undefined
}
