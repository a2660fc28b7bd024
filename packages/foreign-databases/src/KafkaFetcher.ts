import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { KafkaMember } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import type { Reading } from "./KafkaAssignment.ts"
import { KafkaBatches } from "./KafkaBatches.ts"
import type { KafkaCluster } from "./KafkaCluster.ts"
import { type Fault, faultOf, lifetime, mayPass, paused, repeated } from "./KafkaFaults.ts"
import { type FetchedPartition, fetchRecords, listOffsets } from "./KafkaFetchCalls.ts"
import type { Offsets } from "./KafkaGroupCalls.ts"
import { refusalOf } from "./KafkaLine.ts"
import { breach } from "./ServerFrames.ts"

/** Bytes that the brokers are asked for in all, and one at least. */
const bytesOfAll = 2 * maxMessageBody
/** A batch is this long by Kafka's own settings, and may be so long by others. */
const usualBatch = maxMessageBody + 64 * 1024
const largestBatch = 10 * 1024 * 1024
/** Brokers that are fetched from at the same time, and partitions of one fetch. Others have their turn. */
const maxAtOnce = 8
const maxPartitions = 200
/** How long (ms) a broker waits for records: less, if other brokers wait for their turn. */
const waitMs = 1_000
const shortWaitMs = 250
/** The pause (ms) after a failure, and after a fetch that gave nothing and has not waited. */
const againMs = 500

const outOfRange = 1

export interface FetcherEvents {
  /** The partitions to read: none while the group forms anew. */
  readonly readings: () => ReadonlyArray<Reading>
  /** Whether all that was given of the partition is read. */
  readonly isRead: (reading: Reading) => boolean
  readonly given: (reading: Reading, batches: KafkaBatches) => void
  /** The partition does not have the records that were asked for: it goes on with this one. */
  readonly moved: (reading: Reading, offset: bigint) => void
  /** Called once. */
  readonly failed: (fault: Fault) => void
}

const isTooLarge = (fault: Fault): boolean => fault._tag === "SessionFailure" && fault.code === "RESPONSE_TOO_LARGE"

/** Fetches from the leaders of the partitions. A leader is asked again when all that it has given is read. */
export class KafkaFetcher {
  readonly #cluster: KafkaCluster
  readonly #place: KafkaMember
  readonly #events: FetcherEvents
  /** Leaders that are asked, or that are not asked again yet. */
  readonly #underWay = new Set<number>()
  /** How often a leader was asked. */
  readonly #turns = new Map<number, number>()
  /** Since when a leader fails. */
  readonly #failing = new Map<number, number>()
  /** The leader that has a longer batch than usual: it is read while nobody else is, and one batch at a time. */
  #large: number | null = null
  #isClosed = false

  constructor(cluster: KafkaCluster, place: KafkaMember, events: FetcherEvents) {
    this.#cluster = cluster
    this.#place = place
    this.#events = events
  }

  close(): void {
    this.#isClosed = true
  }

  /** Where partitions begin by the settings. */
  starts(partitions: ReadonlyArray<number>): Promise<Offsets> {
    const { offsetReset, topic } = this.#place
    return repeated(
      async () => {
        const starts = new Map<number, bigint>()
        for (const all of Map.groupBy(partitions, (number) => this.#cluster.leaders[number] ?? -1).values()) {
          const listed = await this.#cluster.atLeader(all[0]!, (line) => line.ask(listOffsets(topic, all, offsetReset)))
          for (const { error, offset, partition } of listed) {
            if (error !== 0) throw refusalOf(error)
            if (offset >= 0n) starts.set(partition, offset)
          }
        }
        if (!partitions.every((number) => starts.has(number))) {
          throw breach("the broker does not say where a partition begins")
        }
        return starts
      },
      () => this.#cluster.refresh()
    )
  }

  /** Asks each leader that is to be asked. */
  fetch(): void {
    if (this.#isClosed) return
    const leaders = Map.groupBy(this.#events.readings(), ({ partition }) => this.#cluster.leaders[partition] ?? -1)
    for (const leader of this.#failing.keys()) if (!leaders.has(leader)) this.#failing.delete(leader)
    if (this.#large !== null && !leaders.has(this.#large)) this.#large = null
    if (this.#large !== null && this.#underWay.size > 0) return
    const free = [...leaders].filter(
      ([leader, readings]) =>
        !this.#underWay.has(leader) &&
        (this.#large === null || this.#large === leader) &&
        readings.every((reading) => this.#events.isRead(reading))
    )
    free.sort(([a], [b]) => (this.#turns.get(a) ?? 0) - (this.#turns.get(b) ?? 0))
    for (const [leader, readings] of free.slice(0, maxAtOnce - this.#underWay.size)) {
      void this.#from(leader, readings, leaders.size)
    }
  }

  /** Never rejects. `leaders`: how many there are. */
  async #from(leader: number, readings: ReadonlyArray<Reading>, leaders: number): Promise<void> {
    this.#underWay.add(leader)
    try {
      await this.#ask(leader, readings, leaders)
      this.#failing.delete(leader)
    } catch (thrown) {
      const fault = faultOf(thrown)
      if (isTooLarge(fault) && this.#large === null) this.#large = leader
      else await this.#wait(leader, fault)
    }
    this.#underWay.delete(leader)
    this.fetch()
  }

  async #ask(leader: number, readings: ReadonlyArray<Reading>, leaders: number): Promise<void> {
    const turn = this.#turns.get(leader) ?? 0
    this.#turns.set(leader, turn + 1)
    // Not always the same one first: a broker gives the first ones first.
    const from = (turn * Math.max(1, readings.length > maxPartitions ? maxPartitions : 1)) % readings.length
    const asked = [...readings.slice(from), ...readings.slice(0, from)].slice(0, maxPartitions)
    const isLarge = this.#large === leader
    const bytes = isLarge ? 1 : Math.floor(bytesOfAll / Math.min(leaders, maxAtOnce))
    const since = performance.now()
    const offsets = new Map(asked.map(({ partition, position }) => [partition, position]))
    const call = fetchRecords({
      topic: this.#place.topic,
      offsets,
      waitMs: leaders > maxAtOnce ? shortWaitMs : waitMs,
      bytes,
      longest: isLarge ? largestBatch : bytes + usualBatch
    })
    const { error, partitions } = await this.#cluster.atLeader(asked[0]!.partition, (line) => line.ask(call))
    if (error !== 0) throw refusalOf(error)
    const size = partitions.reduce((sum, { records }) => sum + records.length, 0)
    if (isLarge && size <= usualBatch) this.#large = null
    await this.#take(asked, offsets, partitions)
    if (size === 0 && performance.now() - since < againMs) await paused(againMs)
  }

  async #take(
    asked: ReadonlyArray<Reading>,
    offsets: Offsets,
    partitions: ReadonlyArray<FetchedPartition>
  ): Promise<void> {
    if (this.#isClosed) return
    const byNumber = new Map(asked.map((reading) => [reading.partition, reading]))
    const gone: Array<Reading> = []
    let refusal: BrokerRefusal | null = null
    let isFirst = true
    for (const { aborted, error, partition, records } of partitions) {
      const reading = byNumber.get(partition)!
      if (error === outOfRange) gone.push(reading)
      else if (error !== 0) refusal ??= refusalOf(error)
      else if (records.length > 0) {
        // Only the others may be cut off in their first batch. So each answer has something new.
        if (isFirst && !KafkaBatches.isWhole(records)) throw breach("the broker gives no whole batch of records")
        isFirst = false
        // If the partition has another leader by now, that one may have given the same.
        const isWanted = reading.position === offsets.get(partition) && this.#events.isRead(reading)
        if (isWanted) this.#events.given(reading, new KafkaBatches(records, aborted))
      }
    }
    if (gone.length > 0) {
      const starts = await this.starts(gone.map(({ partition }) => partition))
      for (const reading of gone) this.#events.moved(reading, starts.get(reading.partition)!)
    }
    if (refusal !== null) throw refusal
  }

  /** A failure that may pass is waited for, and the cluster is asked who leads now. */
  async #wait(leader: number, fault: Fault): Promise<void> {
    const now = performance.now()
    const since = this.#failing.get(leader) ?? now
    this.#failing.set(leader, since)
    if (!mayPass(fault) || now - since > lifetime) return this.#fail(fault)
    await paused(againMs)
    await this.#cluster.refresh().catch((thrown: unknown) => {
      const other = faultOf(thrown)
      if (!mayPass(other)) this.#fail(other)
    })
  }

  #fail(fault: Fault): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#events.failed(fault)
  }
}
