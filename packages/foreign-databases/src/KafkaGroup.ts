import { cancelled } from "@tidegate/connectors/Failure"
import type { KafkaMember } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"
import { assigned, assignorNames } from "./KafkaAssignors.ts"
import { judgeServer, type KafkaCluster } from "./KafkaCluster.ts"
import { paused, pauseAfter, repeated } from "./KafkaFaults.ts"
import type { KafkaCall } from "./KafkaFrames.ts"
import {
  type Assignment,
  commitOffsets,
  countPartitions,
  fetchOffsets,
  findCoordinator,
  heartbeat,
  type Joined,
  joinGroup,
  leaveGroup,
  type Membership,
  maxTopics,
  type Offsets,
  syncGroup
} from "./KafkaGroupCalls.ts"
import { KafkaLine, refusalOf } from "./KafkaLine.ts"
import { breach } from "./ServerFrames.ts"

/** The time (ms) between two heartbeats: a third of the time that a member may be silent. */
const everyMs = 3_000
/** How long (ms) the end waits for the answer of the broker. */
const lastWords = 1_000

/** The broker is not the one that knows the group, or does not know it yet. */
const elsewhere: ReadonlySet<number> = new Set([14, 15, 16])
const wrongGeneration = 22
const unknownMember = 25
const rebalancing = 27
const memberIdRequired = 79
/** The member is not in the group as it was: it joins again. */
const joinsAgain: ReadonlySet<number> = new Set([wrongGeneration, unknownMember, rebalancing])

export interface GroupEvents {
  /** The group is asked to take the member. */
  readonly joining: () => void
  /** These partitions of the topic are the member's. */
  readonly assigned: (partitions: ReadonlyArray<number>) => Promise<void>
  /** The group forms anew. `isLost`: the partitions may be somebody else's already. The group waits until it is dealt with. */
  readonly revoked: (isLost: boolean) => Promise<void>
}

/** A member of a consumer group. It has a connection of its own with the broker that knows the group, because fetches wait on the others. */
export class KafkaGroup {
  readonly #guard: Guard
  readonly #place: KafkaMember
  readonly #cluster: KafkaCluster
  readonly #events: GroupEvents
  #line: Promise<KafkaLine> | null = null
  /** The same, once it is open. */
  #open: KafkaLine | null = null
  #memberId = ""
  #generation = -1
  /** How many partitions the topic had when this member has assigned them; null: another one has. */
  #shared: number | null = null
  #isClosed = false
  #isBeating = false
  #beat: NodeJS.Timeout | undefined
  /** Called when the group forms anew. */
  #anew: (isLost: boolean) => void = () => undefined

  constructor(guard: Guard, place: KafkaMember, cluster: KafkaCluster, events: GroupEvents) {
    this.#guard = guard
    this.#place = place
    this.#cluster = cluster
    this.#events = events
  }

  /**
   * Is a member of the group until `close`. Rejects with the fault that ends it. A group that forms anew at once, again and again, is joined
   * after a pause.
   */
  async run(): Promise<never> {
    for (let pause = 0; ;) {
      if (pause > 0) await paused(pause)
      const partitions = await this.#joined()
      const since = performance.now()
      const { promise, reject, resolve } = Promise.withResolvers<boolean>()
      promise.catch(() => undefined)
      this.#anew = resolve
      this.#beat = setInterval(() => void this.#beats().catch(reject), everyMs).unref()
      try {
        await this.#events.assigned(partitions)
        await this.#events.revoked(await promise)
      } finally {
        clearInterval(this.#beat)
      }
      pause = performance.now() - since < everyMs ? pauseAfter(pause) : 0
    }
  }

  /** The offsets that the group has committed of these partitions. */
  async offsets(partitions: ReadonlyArray<number>): Promise<Offsets> {
    const { group, topic } = this.#place
    const { error, offsets } = await this.#ask(fetchOffsets(group, topic, partitions))
    const wrong = error || offsets.find((one) => one.error !== 0)?.error
    if (wrong) throw refusalOf(wrong)
    return new Map(offsets.filter(({ offset }) => offset >= 0n).map(({ offset, partition }) => [partition, offset]))
  }

  /** Whether the group has kept them. If not, it forms anew. */
  async commit(offsets: Offsets): Promise<boolean> {
    const self = this.#self
    const { error } = await this.#ask(commitOffsets(self, this.#place.topic, offsets))
    // The member has joined again meanwhile: what it is now was not refused.
    return error === 0 || (self.generation === this.#generation && this.#isIn(error))
  }

  /** Commits, leaves the group, and ends the connection. Nothing is waited for. */
  close(offsets: Offsets): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#beat)
    const line = this.#open
    if (line === null || this.#memberId === "") {
      this.#line?.then((late) => late.close()).catch(() => undefined)
      return
    }
    if (offsets.size > 0) line.ask(commitOffsets(this.#self, this.#place.topic, offsets)).catch(() => undefined)
    line
      .ask(leaveGroup(this.#self))
      .catch(() => undefined)
      .finally(() => line.close())
    setTimeout(() => line.close(), lastWords).unref()
  }

  get #self(): Membership {
    return { group: this.#place.group, memberId: this.#memberId, generation: this.#generation }
  }

  /** Asks the broker that knows the group. It is looked for again while a failure may pass. */
  #ask<A extends { readonly error: number }>(call: KafkaCall<A>): Promise<A> {
    return repeated(
      async () => {
        if (this.#isClosed) throw cancelled
        const answer = await (await this.#coordinator()).ask(call)
        if (elsewhere.has(answer.error)) throw refusalOf(answer.error)
        return answer
      },
      async () => this.#open?.close()
    )
  }

  #coordinator(): Promise<KafkaLine> {
    if (this.#open?.isOld === true) this.#open.close()
    const line = (this.#line ??= this.#found())
    line.catch(() => this.#forget(line))
    return line
  }

  #forget(line: Promise<KafkaLine> | null): void {
    if (this.#line === line) this.#line = null
  }

  async #found(): Promise<KafkaLine> {
    const { error, said, server } = await this.#cluster.anywhere((line) => line.ask(findCoordinator(this.#place.group)))
    if (error !== 0) throw refusalOf(error, said)
    judgeServer(server)
    if (this.#isClosed) throw cancelled
    const own = this.#line
    const line = new KafkaLine(this.#guard, server, this.#place, () => {
      if (this.#open === line) this.#open = null
      this.#forget(own)
    })
    await line.open()
    this.#open = line
    return line
  }

  async #joined(): Promise<ReadonlyArray<number>> {
    const { topic } = this.#place
    for (let pause = 0; ; pause = pauseAfter(pause)) {
      if (pause > 0) await paused(pause)
      if (this.#isClosed) throw cancelled
      this.#events.joining()
      let joined = await this.#ask(joinGroup(this.#self, topic, assignorNames))
      if (joined.error === memberIdRequired && this.#memberId === "") {
        this.#memberId = joined.memberId
        joined = await this.#ask(joinGroup(this.#self, topic, assignorNames))
      }
      if (!this.#isIn(joined.error)) continue
      this.#memberId = joined.memberId
      this.#generation = joined.generation
      const { error, partitions } = await this.#ask(syncGroup(this.#self, topic, await this.#assignments(joined)))
      if (!this.#isIn(error)) continue
      const { length } = this.#cluster.leaders
      // The leader may know the topic better.
      if (partitions.some((number) => number < 0 || number >= length)) await this.#cluster.refresh()
      if (partitions.some((number) => number < 0 || number >= this.#cluster.leaders.length)) {
        throw breach("the group has assigned a partition that the topic does not have")
      }
      return partitions
    }
  }

  /** What is assigned to whom, if this member is the leader. */
  async #assignments({ assignor, leader, memberId, members }: Joined): Promise<ReadonlyMap<string, Assignment>> {
    this.#shared = null
    if (leader !== memberId) return new Map()
    const topics = new Set([this.#place.topic, ...members.flatMap((member) => member.topics)])
    if (topics.size > maxTopics) throw breach(`the members of the group read more than ${maxTopics} topics`)
    // Of the broker that knows the group: with the others, fetches may be waiting.
    const counts = await (await this.#coordinator()).ask(countPartitions([...topics]))
    const assignments = assigned(assignor, members, counts)
    if (assignments === null) throw breach("the group assigns partitions in a way that nobody has offered")
    if (counts.get(this.#place.topic) !== this.#cluster.leaders.length) await this.#cluster.refresh()
    this.#shared = this.#cluster.leaders.length
    return assignments
  }

  async #beats(): Promise<void> {
    if (this.#isBeating) return
    this.#isBeating = true
    try {
      await this.#beatOnce()
    } finally {
      this.#isBeating = false
    }
  }

  async #beatOnce(): Promise<void> {
    // The topic has more partitions than were assigned.
    if (this.#shared !== null && this.#shared !== this.#cluster.leaders.length) return this.#anew(false)
    const self = this.#self
    const { error } = await this.#ask(heartbeat(self))
    if (self.generation === this.#generation) this.#isIn(error)
  }

  /** Whether the member is in the group as it was. If not, it joins again. Throws for any other error. */
  #isIn(error: number): boolean {
    if (error === 0) return true
    if (!joinsAgain.has(error)) throw refusalOf(error)
    if (error === unknownMember) this.#memberId = ""
    this.#anew(error !== rebalancing)
    return false
  }
}
