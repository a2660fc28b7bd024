import { Result, Schema } from "effect"
import * as IpNetwork from "effect/net/IpNetwork"
import { BlockList, connect, isIP, Socket, SocketAddress } from "node:net"
import type { LookupFunction } from "node:net"
import { connect as connectTls, createSecureContext, getCACertificates } from "node:tls"
import type { SecureContext, TLSSocket } from "node:tls"
import { callbackify } from "node:util"
import type { ClientTls } from "@tidegate/model/ClientTls"
import { buildConnector } from "undici"
import { makeResolver } from "./Resolver.ts"
import type { Resolve } from "./Resolver.ts"

/** An entry of the allow-list that cannot be read. */
export class InvalidNetwork extends Schema.TaggedError<InvalidNetwork>()("InvalidNetwork", {
  entry: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `"${this.entry}" is not a network such as 10.0.0.0/8 or fd00::/8: ${this.reason}`
  }
}

/**
 * Why the guard opened no connection. The code is the contract's. The message names the requested host and never
 * an address that it resolved to: error messages reach tenants, who must not learn the operator's network from them.
 */
export class GuardError extends Error {
  override readonly name = "GuardError"
  readonly code: "TARGET_NOT_ALLOWED" | "DNS_LOOKUP_FAILED"

  constructor(code: GuardError["code"], message: string) {
    super(message)
    this.code = code
  }
}

export interface GuardOptions {
  /** Networks that are allowed although they are private or special. */
  readonly allow: ReadonlyArray<string>
  /** PEM certificates of authorities that are trusted in addition to the machine's own. */
  readonly ca?: ReadonlyArray<string>
  /** Milliseconds to resolve, connect and finish the TLS handshake; it may take up to half a second longer. Default 10 s. */
  readonly connectTimeoutMs?: number
  /** Resolves host names; for tests. */
  readonly resolve?: Resolve
}

export interface Guard {
  /** Whether connections to an IP address are allowed. False for any text that is not an IP address. */
  readonly permits: (address: string) => boolean
  /** Why a host must not be contacted, by us or by another party on our behalf; null if it may be. Never rejects. */
  readonly refusalOf: (host: string) => Promise<GuardError | null>
  /**
   * The connector for an HTTP client: plain or TLS. The certificate is always verified against the host name, whatever the environment
   * variables are.
   */
  readonly connect: buildConnector.connector
  /** Such a connector that shows a certificate, or trusts other authorities. If the TLS library refuses them, every connection fails. */
  readonly connectAs: (tls: ClientTls) => buildConnector.connector
  /**
   * Opens a plain TCP socket for other protocols than HTTP, such as a database or a mail server. The returned socket is still connecting; a
   * refusal arrives as its `error` event (a `GuardError`). The caller limits how long connecting may take.
   */
  readonly openSocket: (target: { readonly host: string; readonly port: number }) => Socket
  /** Starts TLS on such a socket after both sides have agreed on it: verified against the host as `connect` does. */
  readonly secure: (socket: Socket, host: string) => TLSSocket
}

/** The loopback networks, for tests and for development on one machine. */
export const loopbackOnly: ReadonlyArray<string> = ["127.0.0.0/8", "::1/128"]

/** All of IPv4 that is not a public host. */
const closedIpv4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // A cloud's host agent answers on this address. By its number alone, it would count as a public address.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4"
]

/**
 * All of IPv6 that is not a public host. Global unicast is 2000::/3. The first three networks cover everything else
 * (loopback, IPv4-compatible, NAT64, discard-only, unique local, link and site local, multicast, segment routing and unassigned
 * space). They are closed as a whole, because a list of known networks would fail open for new ones.
 */
const closedIpv6 = [
  "::/3",
  "4000::/2",
  "8000::/1",
  // Protocol assignments: Teredo, benchmarking, ORCHID.
  "2001::/23",
  "2001:db8::/32",
  // 6to4: an IPv4 address in another form.
  "2002::/16",
  "3fff::/20"
]

const ipv4Mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)/

const parseNetwork = (entry: string): Result.Result<IpNetwork.IpNetwork, InvalidNetwork> => {
  const network = Result.mapError(
    IpNetwork.fromString(entry),
    (error) => new InvalidNetwork({ entry, reason: error.message })
  )
  // Such an address is checked as the IPv4 address in it, so this network would never match.
  return Result.filterOrFail(
    network,
    (parsed) => !ipv4Mapped.test(IpNetwork.format(parsed)),
    () => new InvalidNetwork({ entry, reason: "it has to be written as an IPv4 network" })
  )
}

/** Parses the networks of an operator's setting, separated by commas or white space. An empty text is an empty list. */
export const parseNetworks = (text: string): Result.Result<ReadonlyArray<string>, InvalidNetwork> => {
  const networks: Array<string> = []
  for (const entry of text.split(/[\s,]+/)) {
    if (entry === "") continue
    const network = parseNetwork(entry)
    if (Result.isFailure(network)) return Result.fail(network.failure)
    networks.push(IpNetwork.format(network.success))
  }
  return Result.succeed(networks)
}

/**
 * A set of networks. The families are separate because a `BlockList` treats an IPv4 address as its IPv4-mapped IPv6 form:
 * an IPv6 rule such as ::/3 would match every IPv4 address.
 */
const makeNetworkSet = (networks: ReadonlyArray<string>) => {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const entry of networks) {
    const network = Result.getOrThrow(parseNetwork(entry))
    const family = IpNetwork.isIpv4Network(network) ? "ipv4" : "ipv6"
    const [address = ""] = IpNetwork.format(network).split("/")
    lists[family].addSubnet(address, network.prefixLength, family)
  }
  return (address: string, family: "ipv4" | "ipv6"): boolean => lists[family].check(address, family)
}

/** How long one address is tried before the next; long enough for a second SYN. Node's default of half a second is too short for slow routes. */
const attemptTimeoutMs = 2_000

/**
 * The only place where this system opens outbound connections. A connection is opened only to an address that was
 * checked, and exactly to that address: the check *is* the look-up, so a name that resolves differently a moment later changes nothing.
 *
 * Fails closed: if one of a name's addresses is private, the whole name is refused, because that is how a DNS rebinding
 * answer looks. Several public addresses are tried in turn. Proxy variables of the environment are ignored: a proxy
 * would resolve the name again, unchecked.
 *
 * Throws `InvalidNetwork` if an entry of `allow` cannot be read.
 */
export const makeGuard = (options: GuardOptions): Guard => {
  const resolve = options.resolve ?? makeResolver()
  const allowed = makeNetworkSet(options.allow)
  const closed = makeNetworkSet([...closedIpv4, ...closedIpv6])
  const passes = (address: string, family: "ipv4" | "ipv6") => allowed(address, family) || !closed(address, family)

  const permits = (address: string): boolean => {
    const family = isIP(address)
    if (family === 0) return false
    if (family === 4) return passes(address, "ipv4")
    // Canonical form: without a zone, and with an embedded IPv4 address written out.
    const canonical = new SocketAddress({ address, family: "ipv6" }).address
    const embedded = ipv4Mapped.exec(canonical)?.[1]
    return embedded === undefined ? passes(canonical, "ipv6") : passes(embedded, "ipv4")
  }

  const refused = (host: string) =>
    new GuardError(
      "TARGET_NOT_ALLOWED",
      `${host} is not a public host, nor in a network that TIDEGATE_EGRESS_ALLOW names`
    )

  /** A host that is an IP address is never looked up, so it has to be checked before. */
  const refusesLiteral = (host: string): boolean => isIP(host) !== 0 && !permits(host)

  const addressesOf = async (hostname: string) => {
    const addresses = await resolve(hostname).catch((error: unknown) => {
      const cause = error instanceof Error && "code" in error ? String(error.code) : String(error)
      throw new GuardError("DNS_LOOKUP_FAILED", `cannot resolve ${hostname}: ${cause}`)
    })
    if (addresses.length === 0) throw new GuardError("DNS_LOOKUP_FAILED", `${hostname} has no address`)
    if (!addresses.every(permits)) throw refused(hostname)
    return addresses.map((address) => ({ address, family: isIP(address) }))
  }
  const checkedAddresses = callbackify(addressesOf)

  // `autoSelectFamily` always asks for all addresses.
  const lookup: LookupFunction = (hostname, _options, callback) =>
    checkedAddresses(hostname, (error, addresses) => callback(error, addresses ?? []))

  const addressing = {
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptTimeoutMs
  } as const

  const connectTimeoutMs = options.connectTimeoutMs ?? 10_000
  const authorities = () => (options.ca === undefined ? {} : { ca: [...getCACertificates("default"), ...options.ca] })
  const verifyingBy = (secureContext: SecureContext) => ({
    // Set explicitly, because an environment variable can turn the default off.
    rejectUnauthorized: true,
    secureContext
  })
  // One for all connections: creating it parses every certificate.
  const verifying = verifyingBy(createSecureContext(authorities()))

  /** `connectUnchecked` checks no host that is an address. */
  const checking =
    (connectUnchecked: buildConnector.connector): buildConnector.connector =>
    (target, callback) => {
      if (refusesLiteral(target.hostname)) {
        // Deferred, as every other outcome is: the client cannot handle an answer inside the call.
        process.nextTick(callback, refused(target.hostname), null)
        return
      }
      // A name with a final dot is the same name, but certificates are issued without the dot.
      const dotted = target.protocol === "https:" && target.hostname.endsWith(".")
      connectUnchecked(dotted ? { ...target, servername: target.hostname.slice(0, -1) } : target, callback)
    }

  // Each has its own TLS sessions, so that none is resumed with another certificate.
  const connecting = (verifying: ReturnType<typeof verifyingBy>) =>
    checking(buildConnector({ ...addressing, allowH2: false, timeout: connectTimeoutMs, ...verifying }))

  return {
    permits,
    refusalOf: async (host) => {
      if (isIP(host) !== 0) return permits(host) ? null : refused(host)
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<GuardError>((resolve) => {
        const give = () => resolve(new GuardError("DNS_LOOKUP_FAILED", `cannot resolve ${host} in time`))
        timer = setTimeout(give, connectTimeoutMs)
      })
      const looked = addressesOf(host).then(
        () => null,
        (error: GuardError) => error
      )
      return Promise.race([looked, late]).finally(() => clearTimeout(timer))
    },
    connect: connecting(verifying),
    connectAs: ({ authorities: own, identity }) => {
      try {
        const context = createSecureContext({
          ...(own === null ? authorities() : { ca: own }),
          ...(identity === null ? {} : { cert: identity.certificate, key: identity.key })
        })
        return connecting(verifyingBy(context))
      } catch {
        // The library's own text may quote what it was given.
        const unusable = new Error("the certificate, its key or the authorities of this destination cannot be used")
        return (_, callback) => process.nextTick(callback, unusable, null)
      }
    },
    openSocket: ({ host, port }) =>
      refusesLiteral(host) ? new Socket().destroy(refused(host)) : connect({ ...addressing, host, port }),
    secure: (socket, host) => {
      const name = host.endsWith(".") ? host.slice(0, -1) : host
      // For an IP address, no server name is sent, and the certificate is verified against the address.
      return connectTls({ ...verifying, socket, host: name, servername: isIP(name) === 0 ? name : "" })
    }
  }
}
