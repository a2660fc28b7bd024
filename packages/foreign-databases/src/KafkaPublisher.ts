import type { BrokerRefusal, KafkaRecord, KafkaTopic } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"
import { KafkaCluster } from "./KafkaCluster.ts"
import { faultOf } from "./KafkaFaults.ts"
import { KafkaPartition } from "./KafkaPartition.ts"
import { partitionOfKey } from "./KafkaRecords.ts"
import type { Protocol, Published, Publisher } from "./Publisher.ts"

/** Publishes to one topic: a connection with each broker that leads a partition which gets records. */
class KafkaPublisher implements Publisher<KafkaRecord> {
  readonly #place: KafkaTopic
  readonly #cluster: KafkaCluster
  readonly #partitions = new Map<number, KafkaPartition>()
  /** The partition of the next record without a key. */
  #current: number

  constructor(guard: Guard, place: KafkaTopic, signedIn: (failure: BrokerRefusal | SessionFailure | null) => void) {
    this.#place = place
    this.#cluster = new KafkaCluster(guard, place)
    // Processes and destinations do not begin with the same partition.
    this.#current = Math.floor(Math.random() * 1_000)
    this.#cluster.refresh().then(
      () => signedIn(null),
      (thrown: unknown) => signedIn(faultOf(thrown))
    )
  }

  isOpen(): boolean {
    return !this.#cluster.isClosed
  }

  close(): void {
    this.#cluster.close()
  }

  publish(record: KafkaRecord, done: (result: Published) => void, mayStart: () => boolean): () => void {
    const { leaders } = this.#cluster
    const number = record.key === null ? this.#any(leaders) : partitionOfKey(record.key, leaders.length)
    let partition = this.#partitions.get(number)
    if (partition === undefined) {
      partition = new KafkaPartition(this.#cluster, this.#place, number)
      this.#partitions.set(number, partition)
    }
    return partition.add(record, done, mayStart)
  }

  /** Records without a key go to the same partition as long as they are one batch, and then to the next one that has a leader. */
  #any(leaders: ReadonlyArray<number>): number {
    const isUsable = (number: number): boolean => leaders[number]! >= 0 && this.#partitions.get(number)?.isBusy !== true
    const first = this.#current % leaders.length
    for (let i = 0; i < leaders.length; i++) {
      const number = (first + i) % leaders.length
      if (isUsable(number)) return (this.#current = number)
    }
    return (this.#current = (first + 1) % leaders.length)
  }
}

export const kafka: Protocol<"kafka"> = {
  connect: (guard, place, signedIn) => new KafkaPublisher(guard, place, signedIn)
}
