import type { KafkaRecord, KafkaTopic } from "@tidegate/connectors/Brokers"
import { cancelled } from "@tidegate/connectors/Failure"
import { kafkaError } from "@tidegate/connectors/KafkaErrors"
import { produce, type Produced } from "./KafkaCalls.ts"
import type { KafkaCluster } from "./KafkaCluster.ts"
import { type Fault, faultOf, lifetime, mayPass, paused, pauseAfter } from "./KafkaFaults.ts"
import { type KafkaLine, refusalOf } from "./KafkaLine.ts"
import { type KafkaProducer, recordSize, sequenceAfter } from "./KafkaRecords.ts"
import type { Published } from "./Publisher.ts"

/** Limits of a batch unless the settings have others. A larger record is one of its own. */
const usual = { maxCount: 200, maxBytes: 512 * 1024, maxWaitMs: 0 }

interface Entry {
  readonly record: KafkaRecord
  /** Bytes that it needs in a batch. */
  readonly size: number
  readonly since: number
  readonly until: number
  readonly mayStart: () => boolean
  /** Null: nobody waits for it any more. */
  done: ((result: Published) => void) | null
  /** The cluster has refused a batch with this record: it is sent alone. */
  isAlone: boolean
}

/** Errors by which the cluster does not know what this publisher has sent before. */
const forgotten: ReadonlySet<number> = new Set([45, 47, 49, 59])
/** The cluster has the records already: they were sent before, and the answer was lost. */
const duplicate = 46
/** Errors that are the same for every record: of the broker itself, of the sign-in, and of rights. */
const asWhole: ReadonlySet<number> = new Set([-1, 29, 31, 53, 58])

interface Sending {
  isUncertain: boolean
}

/**
 * The records for one partition, in their order. One batch is under way at a time: what comes meanwhile is the next one. A batch whose answer
 * was lost is sent again unchanged, with the same numbers, by which the cluster recognises it.
 */
export class KafkaPartition {
  readonly #cluster: KafkaCluster
  readonly #topic: string
  readonly #limits: typeof usual
  readonly #number: number
  /** Ends the wait for more records. */
  #go: (() => void) | null = null
  #waiting: Array<Entry> = []
  #isRunning = false
  #isSending = false
  #producer: KafkaProducer | null = null
  /** The number of the next record of this producer. */
  #sequence = 0

  constructor(cluster: KafkaCluster, { batch, topic }: KafkaTopic, number: number) {
    this.#cluster = cluster
    this.#topic = topic
    this.#limits = batch ?? usual
    this.#number = number
  }

  /** Whether a record that is added now has to wait for another batch. */
  get isBusy(): boolean {
    return this.#isSending
  }

  add(record: KafkaRecord, done: (result: Published) => void, mayStart: () => boolean): () => void {
    const since = performance.now()
    const size = recordSize(record)
    const entry: Entry = { record, size, since, until: since + lifetime, mayStart, done, isAlone: false }
    this.#waiting.push(entry)
    if (!this.#isRunning) void this.#run()
    else if (this.#go !== null && this.#isFull()) this.#go()
    return () => {
      entry.done = null
    }
  }

  /** Records that are added in the same turn of the event loop are one batch. */
  async #run(): Promise<void> {
    this.#isRunning = true
    await Promise.resolve()
    for (;;) {
      await this.#gathered()
      const batch = this.#next()
      if (batch.length === 0) break
      this.#isSending = true
      await this.#send(batch)
      this.#isSending = false
    }
    this.#isRunning = false
  }

  #isFull(): boolean {
    const { maxBytes, maxCount } = this.#limits
    let bytes = 0
    for (const { size } of this.#waiting) bytes += size
    return this.#waiting.length >= maxCount || bytes >= maxBytes
  }

  /** Waits until the next batch is full, or its first record has waited long enough. */
  async #gathered(): Promise<void> {
    const first = this.#waiting.find(({ done }) => done !== null)
    if (first === undefined || first.isAlone || this.#isFull()) return
    const left = first.since + this.#limits.maxWaitMs - performance.now()
    if (left <= 0) return
    await new Promise<void>((go) => {
      const timer = setTimeout(go, left).unref()
      this.#go = () => {
        clearTimeout(timer)
        go()
      }
    })
    this.#go = null
  }

  /** The records that nobody waits for any more, or that may not be sent any more, are left out. */
  #next(): ReadonlyArray<Entry> {
    this.#waiting = this.#waiting.filter(({ done, mayStart }) => {
      if (done === null || mayStart()) return done !== null
      done(cancelled)
      return false
    })
    const { maxBytes, maxCount } = this.#limits
    let bytes = 0
    let count = 0
    for (const { isAlone, size } of this.#waiting) {
      bytes += size
      if (count > 0 && (isAlone || bytes > maxBytes || count === maxCount)) break
      count++
      if (isAlone) break
    }
    return this.#waiting.splice(0, count)
  }

  /** Ends when each record of the batch is confirmed, refused, given up, or waits to be sent alone. */
  async #send(batch: ReadonlyArray<Entry>): Promise<void> {
    // Whether the cluster may have the batch.
    const sending: Sending = { isUncertain: false }
    const { until } = batch[0]!
    for (let pause = 0; ; pause = pauseAfter(pause)) {
      let fault: Fault
      try {
        const { error, offset, said } = await this.#produced(batch, sending)
        if (error === 0 || error === duplicate) return this.#succeed(batch, error === 0 ? offset : null)
        fault = refusalOf(error, said)
        if (forgotten.has(error)) this.#renew()
        else if (!kafkaError(error).isRetriable) return this.#refused(batch, error, fault, sending)
      } catch (thrown) {
        fault = faultOf(thrown)
        if (!mayPass(fault)) return this.#fail(batch, fault, sending)
      }
      if (performance.now() + pause > until) return this.#fail(batch, fault, sending)
      const away = await this.#again(pause)
      // Where nothing of it was sent and no broker can be reached, the retry rule of the connection decides.
      if (away !== null && !(sending.isUncertain && mayPass(away))) return this.#fail(batch, away, sending)
    }
  }

  #produced(batch: ReadonlyArray<Entry>, sending: Sending): Promise<Produced> {
    return this.#cluster.atLeader(this.#number, async (line) => {
      const producer = await this.#own(line, sending)
      const call = produce(this.#topic, this.#number, {
        producer,
        sequence: this.#sequence,
        records: batch.map(({ record }) => record),
        time: Date.now()
      })
      const wasUncertain = sending.isUncertain
      sending.isUncertain = true
      const answer = await line.ask(call)
      // A broker that refuses has kept nothing, unless it says that another try may succeed.
      sending.isUncertain = wasUncertain || asWhole.has(answer.error) || kafkaError(answer.error).isRetriable
      return answer
    })
  }

  /** The producer of the next batch, or the one with which a batch was sent that the cluster may have. */
  async #own(line: KafkaLine, { isUncertain }: Sending): Promise<KafkaProducer> {
    if (isUncertain && this.#producer !== null) return this.#producer
    const producer = await this.#cluster.producer(line)
    if (producer !== this.#producer) {
      this.#producer = producer
      this.#sequence = 0
    }
    return producer
  }

  /** The numbers of this producer cannot go on. */
  #renew(): void {
    if (this.#producer !== null) this.#cluster.forget(this.#producer)
    this.#producer = null
  }

  /** Why the cluster cannot be asked who leads the partition now; null if it can. */
  async #again(pause: number): Promise<Fault | null> {
    if (pause > 0) await paused(pause)
    try {
      await this.#cluster.refresh()
      return null
    } catch (thrown) {
      return faultOf(thrown)
    }
  }

  #succeed(batch: ReadonlyArray<Entry>, offset: bigint | null): void {
    this.#sequence = sequenceAfter(this.#sequence, batch.length)
    for (const [i, { done }] of batch.entries()) {
      done?.(offset === null ? String(this.#number) : `${this.#number} ${offset + BigInt(i)}`)
    }
  }

  /** Which record it does not like, the broker does not say: each is sent alone. */
  #refused(batch: ReadonlyArray<Entry>, error: number, fault: Fault, sending: Sending): void {
    if (batch.length === 1 || asWhole.has(error)) return this.#fail(batch, fault, sending)
    if (sending.isUncertain) this.#renew()
    for (const entry of batch) entry.isAlone = true
    this.#waiting.unshift(...batch)
  }

  #fail(batch: ReadonlyArray<Entry>, fault: Fault, { isUncertain }: Sending): void {
    // If the cluster has the batch, the next one would not have the number after the last one that is known here.
    if (isUncertain) this.#renew()
    for (const { done } of batch) done?.(fault)
  }
}
