import { Context, Result } from "effect"
import { IpNetwork, NetAddress } from "effect/net"

/** The headers by which a proxy says for whom it asks, as Node has them: those that come repeatedly are joined by commas. */
export interface ForwardingHeaders {
  readonly "x-forwarded-for"?: string | ReadonlyArray<string> | undefined
  readonly forwarded?: string | ReadonlyArray<string> | undefined
}

/** Of what proxies have said: characters, from the right, and addresses. Nobody has so many proxies in a row. */
const maxText = 2_048
const maxEntries = 32

/**
 * Whom a request comes from. An operator names the networks of the proxies that stand before the gateway; nobody else is believed what they say of whom
 * they ask for.
 */
export class TrustedProxies {
  readonly #networks: ReadonlyArray<IpNetwork.IpNetwork>

  constructor(networks: ReadonlyArray<IpNetwork.IpNetwork>) {
    this.#networks = networks
  }

  /** Whether a connection from that address is a proxy's. */
  trusts(address: string | undefined): boolean {
    if (this.#networks.length === 0) return false
    const ip = ipOf(address ?? "")
    return ip !== null && this.#includes(ip)
  }

  /**
   * The address of the client: that of the connection, unless it is a trusted proxy's. Then the headers are read from the right, as each
   * proxy has added whom it was asked by, and the first one that is no trusted proxy is the client. Where nobody says who it is (nothing, `unknown`, a name, what is
   * no address), it is the last proxy that was told.
   *
   * Fails closed where both headers are there and say different things: a proxy that writes one of them may pass the other on as a client wrote it, so that neither is
   * believed.
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

  /** The process's; nobody is trusted unless the application says otherwise. */
  static readonly Current = Context.Reference<TrustedProxies>("@tidegate/model/TrustedProxies", {
    defaultValue: () => new TrustedProxies([])
  })
}

/** Networks like `10.0.0.0/8` or `fd00::/8`, or single addresses. Fails with the entry that is none, or that is everybody. */
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

/** Without its zone, and an IPv4 address that is written as an IPv6 one as what it is. */
const ipOf = (text: string): NetAddress.IpAddress | null => {
  if (text.length > 64) return null
  const ip = Result.getOrNull(NetAddress.ipFromString(text.replace(/%.*$/, "")))
  return ip === null ? null : NetAddress.toCanonical(ip)
}

/** The host of what may have a port: `192.0.2.1:80`, `[2001:db8::1]:80`, `2001:db8::1`. */
const hostOf = (entry: string): string =>
  /^\[([^\]]*)\](?::\w+)?$/.exec(entry)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\w+$/.exec(entry)?.[1] ?? entry

const textOf = (value: string | ReadonlyArray<string>): string => (typeof value === "string" ? value : value.join(","))

/** Null: there is none. Of one that is too long, what proxies have added last. */
const forwardedFor = (value: ForwardingHeaders["x-forwarded-for"]): ReadonlyArray<string> | null => {
  if (value === undefined) return null
  const entries = textOf(value).slice(-maxText).split(",")
  return entries.map((entry) => entry.trim())
}

const element = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g
const forParameter = /(?:^|;)\s*for\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))\s*(?:;|$)/i

/** All of it: a quote that a client leaves open would take in what the proxies have added, up to a quote of theirs. */
const wellQuoted = /^(?:[^"]|"(?:[^"\\]|\\.)*")*$/

/** Each element's `for` (RFC 7239); empty where it has none. Of one that is too long nothing is read: it cannot be cut without looking at all of it. */
const forwarded = (value: ForwardingHeaders["forwarded"]): ReadonlyArray<string> | null => {
  if (value === undefined) return null
  const text = textOf(value)
  if (text.length > maxText || !wellQuoted.test(text)) return [""]
  return (text.match(element) ?? []).map((one) => {
    const [, quoted, plain] = forParameter.exec(one.trim()) ?? []
    return quoted?.replace(/\\(.)/g, "$1") ?? plain ?? ""
  })
}
