import { Resolver } from "node:dns/promises"
import { readFileSync } from "node:fs"
import { isIP } from "node:net"

/** Resolves a host name to all of its addresses, or rejects. The addresses are not trusted: the guard checks each one. */
export type Resolve = (hostname: string) => Promise<ReadonlyArray<string>>

/** Replaces the machine's resolver settings; for tests. */
export interface ResolverOptions {
  readonly hostsFile?: string
  /** `address` or `address:port`. */
  readonly nameServers?: ReadonlyArray<string>
}

/** How long the machine's settings (name servers, hosts file) are cached. Short, because a laptop changes networks. */
const settingsMs = 10_000
/** Together with `tries`: a name that gets no answer fails after about five seconds. */
const queryTimeoutMs = 2_000
const tries = 2

interface Settings {
  readonly resolver: Resolver
  readonly hosts: ReadonlyMap<string, ReadonlyArray<string>>
  readonly readAt: number
}

const readHosts = (file: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const hosts = new Map<string, Array<string>>()
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch {
    return hosts
  }
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/)
    if (isIP(address) === 0) continue
    for (const name of names) {
      const known = hosts.get(name.toLowerCase())
      if (known === undefined) hosts.set(name.toLowerCase(), [address])
      else known.push(address)
    }
  }
  return hosts
}

const noSuchRecord: ReadonlySet<unknown> = new Set(["ENODATA", "ENOTFOUND"])

const causeOf = (reason: unknown): unknown => (reason instanceof Error && "code" in reason ? reason.code : reason)

/**
 * The production resolver: the hosts file, then `localhost` (RFC 6761), then our own A and AAAA queries, IPv4 first.
 *
 * `dns.lookup` is not used: it runs `getaddrinfo` in the process's thread pool, two at a time. Two names whose name server
 * does not answer would then delay every other name (measured: a healthy name beside four dead ones took 20 s; here 2 ms), and one dead
 * destination must cost the others nothing. The drawback: names are absolute, and search domains do not apply.
 *
 * Addresses are not cached: connections are kept alive, so look-ups are rare, and an answer is used at once. Concurrent look-ups of a
 * name share one answer: a destination opens hundreds of connections at once.
 */
export const makeResolver = (options: ResolverOptions = {}): Resolve => {
  let settings: Settings | undefined
  const current = (): Settings => {
    const now = performance.now()
    if (settings === undefined || now - settings.readAt > settingsMs) {
      const resolver = new Resolver({ timeout: queryTimeoutMs, tries })
      if (options.nameServers !== undefined) resolver.setServers(options.nameServers)
      settings = { resolver, hosts: readHosts(options.hostsFile ?? "/etc/hosts"), readAt: now }
    }
    return settings
  }

  const ask = async (resolver: Resolver, hostname: string): Promise<ReadonlyArray<string>> => {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
    const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
    if (addresses.length > 0) return addresses
    // A failure for one address family is reported in preference to "no such record" for the other.
    const reasons = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason] : []))
    throw reasons.find((reason) => !noSuchRecord.has(causeOf(reason))) ?? reasons[0]
  }

  const asking = new Map<string, Promise<ReadonlyArray<string>>>()

  return async (hostname) => {
    const { hosts, resolver } = current()
    const name = hostname.toLowerCase().replace(/\.$/, "")
    const listed = hosts.get(name)
    if (listed !== undefined) return listed
    if (name === "localhost" || name.endsWith(".localhost")) return ["127.0.0.1", "::1"]
    const asked = asking.get(hostname)
    if (asked !== undefined) return asked
    const answer = ask(resolver, hostname).finally(() => asking.delete(hostname))
    asking.set(hostname, answer)
    return answer
  }
}
