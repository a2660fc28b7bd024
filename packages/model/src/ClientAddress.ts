import { Result } from "effect"
import { NetAddress } from "effect/net"

/** Text that is not an address is cut to this length, because it is stored. */
const longestAddress = 64

/**
 * The client that an address counts as: an IPv4 address itself, an IPv6 address its /64, because one household or machine has all
 * of that.
 */
export const clientOf = (address: string): string => {
  const parsed = Result.getOrNull(NetAddress.ipFromString(address.replace(/%.*$/, "")))
  if (parsed === null) return address.slice(0, longestAddress)
  const ip = NetAddress.toCanonical(parsed)
  if (NetAddress.isIpv4Address(ip)) return NetAddress.formatIp(ip)
  const network = NetAddress.ipv6ToSegments(ip).slice(0, 4)
  return `${network.map((segment) => segment.toString(16)).join(":")}::/64`
}
