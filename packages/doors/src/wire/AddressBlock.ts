import { isIPv6 } from "node:net"

/**
 * What stands for one client where clients are counted by their address: an IPv4 address, or the /64 of an IPv6 one, because
 * one household or machine has all of it.
 */
export const addressBlock = (address: string): string => {
  if (!address.includes(":") || !isIPv6(address)) return address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)
  if (mapped !== null) return mapped[1]!
  // Node writes an address in its shortest form, with at most one run of zero groups left out.
  const [head = "", tail] = address.replace(/%.*$/, "").split("::")
  const before = head === "" ? [] : head.split(":")
  if (tail === undefined) return before.slice(0, 4).join(":")
  const after = tail === "" ? [] : tail.split(":")
  const groups = [
    ...before,
    ...Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0"),
    ...after
  ]
  return groups.slice(0, 4).join(":")
}
