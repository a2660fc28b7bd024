import { Context, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** The headers in which a proxy names its client, as Node provides them: repeated ones are joined by commas. */
export interface ForwardingHeaders {
  readonly "x-forwarded-for"?: string | ReadonlyArray<string> | undefined
  readonly forwarded?: string | ReadonlyArray<string> | undefined
}

/** Limits for these headers: characters, counted from the right, and addresses. Nobody has that many proxies in a row. */
const maxText = 2_048
const maxEntries = 32

/**
 * Determines the client of a request. An operator names the networks of the proxies in front of the gateway; forwarding headers
 * from anyone else are ignored.
 */
export class TrustedProxies {
  readonly #networks: ReadonlyArray<IpNetwork.IpNetwork>

  constructor(networks: ReadonlyArray<IpNetwork.IpNetwork>) {
    this.#networks = networks
  }

  /** Whether the address of a connection belongs to a trusted proxy. */
  trusts(address: string | undefined): boolean {
    if (this.#networks.length === 0) return false
    const ip = ipOf(address ?? "")
    return ip !== null && this.#includes(ip)
  }

  /**
   * The client's address: that of the connection, unless it is a trusted proxy's. Then the headers are read from the right,
   * because each proxy appends its own client, and the first address that is not a trusted proxy's is the client. When there is
   * no usable address (nothing, `unknown`, a name, malformed text), it is the last proxy that was named.
   *
   * Fails closed when both headers are present and disagree: a proxy that writes one of them may pass the other on as a client
   * wrote it, so neither is trusted.
   */
  clientOf(address: string | undefined, headers: ForwardingHeaders): string | null {
    if (address === undefined) return null
    if (this.#networks.length === 0) return address
    const peer = ipOf(address)
    if (peer === null || !this.#includes(peer)) return address
    const told = [forwardedFor(headers["x-forwarded-for"]), forwarded(headers.forwarded)]
      .filter((entries) => entries !== null)
      .map((entries) => NetAddress.formatIp(this.#read(peer, entries)))
    return told.length > 0 && told.every((one) => one === told[0]) ? told[0]! : NetAddress.formatIp(peer)
  }

  #read(peer: NetAddress.IpAddress, entries: ReadonlyArray<string>): NetAddress.IpAddress {
    let last = peer
    for (const entry of entries.slice(-maxEntries).toReversed()) {
      const ip = ipOf(hostOf(entry))
      if (ip === null) return last
      last = ip
      if (!this.#includes(ip)) return last
    }
    return last
  }

  #includes(ip: NetAddress.IpAddress): boolean {
    return this.#networks.some((network) => IpNetwork.contains(network, ip))
  }

  /** The setting of the process; by default no proxy is trusted. */
  static readonly Current = Context.Reference<TrustedProxies>("@tidegate/model/TrustedProxies", {
    defaultValue: () => new TrustedProxies([])
  })
}

/**
 * Networks like `10.0.0.0/8` or `fd00::/8`, or single addresses. Fails with an entry that is malformed, or that covers all
 * addresses.
 */
export const parseTrustedProxies = (entries: ReadonlyArray<string>): Result.Result<TrustedProxies, string> => {
  const networks: Array<IpNetwork.IpNetwork> = []
  for (const entry of entries) {
    const ip = ipOf(entry)
    const written = ip === null ? entry : `${NetAddress.formatIp(ip)}/${NetAddress.isIpv4Address(ip) ? 32 : 128}`
    const network = Result.getOrNull(IpNetwork.fromString(written))
    if (network === null || network.prefixLength === 0) return Result.fail(entry)
    networks.push(network)
  }
  return Result.succeed(new TrustedProxies(networks))
}

/** Without its zone; an IPv4 address in IPv6 notation is converted to IPv4. */
const ipOf = (text: string): NetAddress.IpAddress | null => {
  if (text.length > 64) return null
  const ip = Result.getOrNull(NetAddress.ipFromString(text.replace(/%.*$/, "")))
  return ip === null ? null : NetAddress.toCanonical(ip)
}

/** The host of a text that may have a port: `192.0.2.1:80`, `[2001:db8::1]:80`, `2001:db8::1`. */
const hostOf = (entry: string): string =>
  /^\[([^\]]*)\](?::\w+)?$/.exec(entry)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\w+$/.exec(entry)?.[1] ?? entry

const textOf = (value: string | ReadonlyArray<string>): string => (typeof value === "string" ? value : value.join(","))

/** Null: there is none. From a header that is too long, the last part, which proxies have appended. */
const forwardedFor = (value: ForwardingHeaders["x-forwarded-for"]): ReadonlyArray<string> | null => {
  if (value === undefined) return null
  const entries = textOf(value).slice(-maxText).split(",")
  return entries.map((entry) => entry.trim())
}

const element = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g
const forParameter = /(?:^|;)\s*for\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))\s*(?:;|$)/i

/** The whole header must match: an open quote by a client would swallow what the proxies appended, up to a quote of theirs. */
const wellQuoted = /^(?:[^"]|"(?:[^"\\]|\\.)*")*$/

/**
 * Each element's `for` (RFC 7239); empty where it has none. A header that is too long is ignored: it cannot be cut without
 * reading all of it.
 */
const forwarded = (value: ForwardingHeaders["forwarded"]): ReadonlyArray<string> | null => {
  if (value === undefined) return null
  const text = textOf(value)
  if (text.length > maxText || !wellQuoted.test(text)) return [""]
  return (text.match(element) ?? []).map((one) => {
    const [, quoted, plain] = forParameter.exec(one.trim()) ?? []
    return quoted?.replace(/\\(.)/g, "$1") ?? plain ?? ""
  })
}
