import { BrokerRefusal, type KafkaPlace } from "@tidegate/connectors/Brokers"
import { cancelled } from "@tidegate/connectors/Failure"
import { isAddress } from "@tidegate/connectors/Server"
import type { Guard } from "@tidegate/egress/Egress"
import { initProducerId, type Metadata, metadataOf, type Server } from "./KafkaCalls.ts"
import { KafkaLine, refusalOf } from "./KafkaLine.ts"
import type { KafkaProducer } from "./KafkaRecords.ts"
import { breach } from "./ServerFrames.ts"

/** The most connections of a destination. A further broker takes the place of one that is not needed now. */
const maxLines = 32

/** The most brokers that are asked, beside those that are connected and the servers of the settings. */
const maxAsked = 5

/** Age (ms) after which the cluster is asked again, so that new partitions are seen. */
const longestAge = 300_000

/** A connection that is signed in, or is about to be. */
interface Held {
  readonly line: KafkaLine
  readonly opened: Promise<void>
  /** How many calls use it. */
  uses: number
}

const nameOf = ({ host, port }: Server): string => `${host} ${port}`

/** Throws unless it can be connected to. */
export const judgeServer = ({ host, port }: Server): void => {
  if (!isAddress(host) || port < 1 || port > 65_535) throw breach("the broker names another one that has no address")
}

const leaderless = refusalOf(5)

/**
 * The brokers of a cluster, as far as a topic needs them. Credentials go to the servers of the settings and to the brokers that these name,
 * and each of them is connected to by the guard.
 */
export class KafkaCluster {
  readonly #guard: Guard
  readonly #place: KafkaPlace
  readonly #servers: ReadonlyArray<Server>
  /** By address; the longest unused one first. */
  readonly #lines = new Map<string, Held>()
  /** All connections, also those that are not in `#lines` any more because nobody else may begin to use them. */
  readonly #all = new Set<KafkaLine>()
  /** Addresses that could not be reached, and have not answered since. */
  readonly #failed = new Set<string>()
  /** Called when a connection is not needed any more. */
  #freed: Array<() => void> = []
  #metadata: Metadata | null = null
  #asked = 0
  #refreshing: Promise<Metadata> | null = null
  #producer: Promise<KafkaProducer> | null = null
  /** What it has resolved to. */
  #known: KafkaProducer | null = null
  #isClosed = false

  constructor(guard: Guard, place: KafkaPlace) {
    this.#guard = guard
    this.#place = place
    // Not always the same first one, which may not answer.
    const first = Math.floor(Math.random() * place.servers.length)
    this.#servers = [...place.servers.slice(first), ...place.servers.slice(0, first)]
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The leader of each partition, as far as it is known; the cluster has been asked before. */
  get leaders(): ReadonlyArray<number> {
    if (performance.now() - this.#asked > longestAge) this.refresh().catch(() => undefined)
    return this.#metadata!.leaders
  }

  /** Empty: the brokers do not say it; the cluster has been asked before. */
  get clusterId(): string {
    return this.#metadata!.clusterId
  }

  /** Asks the cluster again who leads the partitions. */
  refresh(): Promise<Metadata> {
    this.#refreshing ??= this.#ask().finally(() => {
      this.#refreshing = null
      this.#asked = performance.now()
    })
    return this.#refreshing
  }

  /** Uses a connection with any broker: with the first one that does it. */
  async anywhere<A>(use: (line: KafkaLine) => Promise<A>): Promise<A> {
    let failure: unknown = null
    for (const server of this.#candidates()) {
      try {
        return await this.#at(server, use)
      } catch (fault) {
        // The others would refuse the same sign-in; to try them all could lock the user out.
        if (fault instanceof BrokerRefusal || this.#isClosed) throw fault
        failure ??= fault
      }
    }
    throw failure
  }

  /** Uses a connection with the leader of the partition. */
  async atLeader<A>(partition: number, use: (line: KafkaLine) => Promise<A>): Promise<A> {
    const leader = this.#metadata?.brokers.get(this.#metadata.leaders[partition] ?? -1)
    if (leader === undefined) throw leaderless
    return this.#at(leader, use)
  }

  /** The number by which the cluster knows this publisher. */
  producer(line: KafkaLine): Promise<KafkaProducer> {
    const asked = (this.#producer ??= line.ask(initProducerId).then(({ error, producer }) => {
      if (error !== 0) throw refusalOf(error)
      return (this.#known = producer)
    }))
    asked.catch(() => {
      if (this.#producer === asked) this.#producer = null
    })
    return asked
  }

  /** It may not be used any more: another one is made. */
  forget(producer: KafkaProducer): void {
    if (this.#known === producer) this.#producer = null
  }

  close(): void {
    this.#isClosed = true
    for (const line of this.#all) line.close()
    for (const go of this.#freed.splice(0)) go()
  }

  async #at<A>(server: Server, use: (line: KafkaLine) => Promise<A>): Promise<A> {
    const name = nameOf(server)
    const held = await this.#taken(name, server)
    try {
      await held.opened
      this.#failed.delete(name)
      return await use(held.line)
    } finally {
      if (!held.line.isOpen) this.#failed.add(name)
      held.uses--
      this.#free(name, held)
    }
  }

  /** A connection that this caller uses. */
  async #taken(name: string, server: Server): Promise<Held> {
    for (;;) {
      if (this.#isClosed) throw cancelled
      const known = this.#lines.get(name)
      if (known?.line.isOld === true) this.#drop(name, known)
      const held = this.#lines.get(name) ?? (this.#all.size < maxLines ? this.#open(name, server) : null)
      if (held !== null) {
        // At once: another caller may look for one that is not used.
        held.uses++
        return held
      }
      const unused = [...this.#lines].find(([, { uses }]) => uses === 0)
      if (unused === undefined) await new Promise<void>((go) => this.#freed.push(go))
      else this.#drop(...unused)
    }
  }

  #open(name: string, server: Server): Held {
    const line = new KafkaLine(this.#guard, server, this.#place, () => {
      this.#all.delete(line)
      if (this.#lines.get(name)?.line === line) this.#lines.delete(name)
      this.#freed.shift()?.()
    })
    this.#all.add(line)
    const held: Held = { line, opened: line.open(), uses: 0 }
    this.#lines.set(name, held)
    return held
  }

  /** Nobody else begins to use it, and it is closed when nobody uses it. */
  #drop(name: string, held: Held): void {
    this.#lines.delete(name)
    this.#free(name, held)
  }

  #free(name: string, held: Held): void {
    if (held.uses > 0) return
    if (this.#lines.get(name) !== held) return held.line.close()
    this.#lines.delete(name)
    this.#lines.set(name, held)
    this.#freed.shift()?.()
  }

  /** Connected brokers first, then the servers of the settings, then brokers that were known; those that were not reached come last. */
  #candidates(): ReadonlyArray<Server> {
    const brokers = [...(this.#metadata?.brokers.values() ?? [])]
    const connected = brokers.filter((broker) => this.#lines.has(nameOf(broker)))
    const all = [...connected, ...this.#servers, ...brokers.slice(0, maxAsked)]
    const each = [...new Map(all.map((server) => [nameOf(server), server])).values()]
    const [last, first] = [true, false].map((is) => each.filter((server) => this.#failed.has(nameOf(server)) === is))
    return [...first!, ...last!]
  }

  async #ask(): Promise<Metadata> {
    return this.anywhere(async (line) => this.#learned(await line.ask(metadataOf(this.#place.topic))))
  }

  #learned(metadata: Metadata): Metadata {
    for (const server of metadata.brokers.values()) judgeServer(server)
    if (metadata.error !== 0 && metadata.leaders.length === 0) throw refusalOf(metadata.error)
    if (metadata.leaders.length === 0) throw breach("the broker knows no partition of the topic")
    this.#metadata = metadata
    const addresses = new Set([...metadata.brokers.values()].map(nameOf))
    for (const [name, held] of this.#lines) if (!addresses.has(name)) this.#drop(name, held)
    const known = new Set(this.#servers.map(nameOf)).union(addresses)
    for (const name of this.#failed) if (!known.has(name)) this.#failed.delete(name)
    return metadata
  }
}
