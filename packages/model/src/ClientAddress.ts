import { Result } from "effect"
import { NetAddress } from "effect/net"

/** What is no address at all is cut to this, because it is kept. */
const longestAddress = 64

/**
 * Whom an address stands for where clients are counted: an IPv4 address for itself, an IPv6 address for its /64, because one
 * household or machine has all of that.
 */
export const clientOf = (address: string): string => {
  const parsed = Result.getOrNull(NetAddress.ipFromString(address.replace(/%.*$/, "")))
  if (parsed === null) return address.slice(0, longestAddress)
  const ip = NetAddress.toCanonical(parsed)
  if (NetAddress.isIpv4Address(ip)) return NetAddress.formatIp(ip)
  const network = NetAddress.ipv6ToSegments(ip).slice(0, 4)
  return `${network.map((segment) => segment.toString(16)).join(":")}::/64`
}
