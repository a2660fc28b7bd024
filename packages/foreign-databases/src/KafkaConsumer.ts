import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, type SessionFailure } from "@tidegate/connectors/Failure"
import type { KafkaMember, Received, Settled } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import type { Consumer, ConsumerEvents, Subscribing } from "./Consumer.ts"
import { KafkaAssignment, type Reading } from "./KafkaAssignment.ts"
import type { KafkaBatches, OpenBatch, ReadRecord } from "./KafkaBatches.ts"
import { KafkaCluster } from "./KafkaCluster.ts"
import { faultOf, paused } from "./KafkaFaults.ts"
import { KafkaFetcher } from "./KafkaFetcher.ts"
import { KafkaGroup } from "./KafkaGroup.ts"
import { messageOf } from "./KafkaMessage.ts"
import { turn } from "./Turn.ts"

/** While messages with more bytes wait, none is added. */
const maxWaiting = maxMessageBody
/** How long (ms) a join may wait for other members until the subscription counts as made: a refusal comes at once. */
const joinMs = 1_000
/** How long (ms) a group that forms anew waits until what was taken is settled. */
const settleMs = 5_000
/** How long (ms) batches are read before others have the event loop. One fetch may give fifty thousand that have no record. */
const readMs = 5

/** What a fetch has given of a partition. */
interface Given {
  readonly reading: Reading
  readonly batches: KafkaBatches
}

/**
 * Reads a topic as a member of a consumer group. The group has committed an offset only if all records of the partition before it are settled. Of a
 * leader no more is fetched until all that it has given was taken; what it has given is checked and decompressed batch by batch, when there is room.
 */
class KafkaConsumer implements Consumer {
  readonly #place: KafkaMember
  readonly #events: ConsumerEvents
  readonly #cluster: KafkaCluster
  readonly #group: KafkaGroup
  readonly #fetcher: KafkaFetcher
  readonly #assignment = new KafkaAssignment()
  #joining: NodeJS.Timeout | undefined
  #isOver = false
  /** Whether the partitions are those of the group: not while it forms anew. */
  #isReading = false
  /** What is not read yet, and the batch of the first of it that is being read. */
  #given: Array<Given> = []
  readonly #unread = new Set<Reading>()
  #open: OpenBatch | null = null
  #waiting: Array<Received> = []
  #waitingBytes = 0
  #isPumping = false
  #isRoom = false
  #committing: Promise<void> | null = null
  /** Called when something is settled. */
  #settled: () => void = () => undefined

  constructor(guard: Guard, place: KafkaMember, events: ConsumerEvents) {
    this.#place = place
    this.#events = events
    this.#cluster = new KafkaCluster(guard, place)
    this.#group = new KafkaGroup(guard, place, this.#cluster, {
      joining: () => (this.#joining ??= setTimeout(() => this.#events.subscribed(), joinMs).unref()),
      assigned: (partitions) => this.#assigned(partitions),
      revoked: (isLost) => this.#revoked(isLost)
    })
    this.#fetcher = new KafkaFetcher(this.#cluster, place, {
      readings: () => (this.#isReading ? this.#assignment.readings : []),
      isRead: (reading) => !this.#unread.has(reading),
      given: (reading, batches) => {
        if (!this.#isReading || !this.#assignment.has(reading)) return
        this.#given.push({ reading, batches })
        this.#unread.add(reading)
        this.#pump()
      },
      moved: (reading, offset) => {
        reading.position = offset
        this.#commit()
      },
      failed: (fault) => this.#end(fault)
    })
    this.#run().catch((thrown: unknown) => this.#end(faultOf(thrown)))
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    this.#waitingBytes = 0
    this.#pump()
    return taken
  }

  /** A group has no word for a record that is of no use: it counts as read. */
  settle({ rejected, stored }: Settled): void {
    this.#assignment.settle([...stored, ...rejected])
    this.#commit()
    this.#settled()
    this.#pump()
  }

  close(): void {
    this.#end(cancelled)
  }

  async #run(): Promise<never> {
    await this.#cluster.refresh()
    return this.#group.run()
  }

  #end(failure: BrokerRefusal | SessionFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#joining)
    this.#group.close(this.#assignment.uncommitted)
    this.#fetcher.close()
    this.#cluster.close()
    this.#drop()
    this.#events.ended(failure)
  }

  #drop(): void {
    this.#given = []
    this.#unread.clear()
    this.#open = null
    this.#waiting = []
    this.#waitingBytes = 0
  }

  async #assigned(partitions: ReadonlyArray<number>): Promise<void> {
    const committed = partitions.length === 0 ? new Map<number, bigint>() : await this.#group.offsets(partitions)
    const others = partitions.filter((number) => !committed.has(number))
    const starts = others.length === 0 ? [] : await this.#fetcher.starts(others)
    if (this.#isOver) return
    this.#assignment.assign(new Map([...committed, ...starts]), committed)
    this.#isReading = true
    clearTimeout(this.#joining)
    this.#events.subscribed()
    // At once, so that "latest" is the same place if the subscription is made again before a record was stored.
    this.#commit()
    this.#fetcher.fetch()
  }

  async #revoked(isLost: boolean): Promise<void> {
    this.#isReading = false
    this.#assignment.withdraw(this.#waiting.map(({ receipt }) => receipt))
    this.#drop()
    // What was taken is being stored. If that takes too long, it is delivered again, to this member or to another one.
    if (!isLost) await Promise.race([this.#quiet(), paused(settleMs)])
    this.#assignment.clear()
  }

  /** All that was taken is settled and committed. */
  async #quiet(): Promise<void> {
    while (this.#assignment.unsettled > 0) await new Promise<void>((go) => (this.#settled = go))
    this.#commit()
    await this.#committing
  }

  /** One commit is under way at a time; what is settled meanwhile is the next one. */
  #commit(): void {
    if (this.#committing !== null || this.#isOver) return
    const offsets = this.#assignment.uncommitted
    if (offsets.size === 0) return
    this.#committing = this.#group.commit(offsets).then(
      (isKept) => {
        this.#committing = null
        if (!isKept) return
        this.#assignment.committed(offsets)
        this.#commit()
      },
      (thrown: unknown) => this.#end(faultOf(thrown))
    )
  }

  /** Makes messages of what was given, while there is room for them. */
  #pump(): void {
    this.#isRoom = true
    if (this.#isPumping) return
    this.#isPumping = true
    this.#pumped().catch((thrown: unknown) => this.#end(faultOf(thrown)))
  }

  async #pumped(): Promise<void> {
    let since = performance.now()
    while (this.#isRoom) {
      this.#isRoom = false
      while (await this.#step()) {
        if (performance.now() - since < readMs) continue
        await turn()
        since = performance.now()
      }
    }
    this.#isPumping = false
    this.#fetcher.fetch()
  }

  /** Whether there may be more to do. */
  async #step(): Promise<boolean> {
    const [given] = this.#given
    const isFull = this.#assignment.unsettled >= this.#place.prefetch || this.#waitingBytes >= maxWaiting
    if (given === undefined || isFull || this.#isOver) return false
    const { batches, reading } = given
    if (this.#open === null) {
      const open = await batches.open(reading.position)
      // The group may have formed anew meanwhile.
      if (this.#given[0] !== given) return true
      this.#open = open
      if (open !== null) return true
      this.#given.shift()
      this.#unread.delete(reading)
      return true
    }
    const { done, value } = this.#open.records.next()
    if (done === true) {
      reading.position = this.#open.next
      this.#open = null
      // Records that nobody gets are read, too.
      this.#commit()
    } else if (value === null) {
      await turn()
    } else {
      this.#deliver(reading, value)
    }
    return true
  }

  #deliver(reading: Reading, record: ReadRecord): void {
    const receipt = this.#assignment.give(reading, record.offset)
    const { partition } = reading
    const { clusterId } = this.#cluster
    const message = messageOf(record, { clusterId, topic: this.#place.topic, partition })
    this.#waiting.push({ receipt, ...message })
    this.#waitingBytes += message.body?.length ?? 0
    this.#events.arrived()
  }
}

export const kafkaConsumer: Subscribing<"kafka"> = {
  subscribe: ({ guard }, place, events) => new KafkaConsumer(guard, place, events)
}
