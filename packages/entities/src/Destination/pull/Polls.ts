import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import type { Consumers } from "../queue/QueueHost.ts"
import type { Pulled, PulledMessage, Pulling, Settling } from "./PullProtocol.ts"

/** Calls of one destination that wait at once. */
export const maxPolls = 64
/** Messages of one destination that consumers have and have not settled. */
export const maxLeased = 1_000
/** After its last call a consumer still counts as there for so long (ms): most come back at once. */
const lingerMs = 10_000
/** The settled receipts that are remembered, so that a repeated call is answered as the first one. */
const maxSettled = 4_096

/**
 * There was no attempt. `returned`: no consumer has got it. `abandoned`: a consumer has it, but the actor ends, and the next owner
 * hands it out again.
 */
export type Unheld = { readonly kind: "returned" } | { readonly kind: "abandoned" }

/** How an attempt to hand out a message has ended. Times are Unix ms. */
export type PullEnding =
  | { readonly kind: "acknowledged"; readonly leasedAt: number }
  | { readonly kind: "expired"; readonly leasedAt: number }
  | { readonly kind: "refused"; readonly leasedAt: number; readonly reason: string }
  | Unheld

/** The environment of the calls of a destination. */
export interface PollsHost {
  readonly now: () => number
  /** Calls back after so long (ms), unless cancelled. */
  readonly after: (ms: number, then: () => void) => () => void
  /** A consumer asks. */
  readonly asked: () => void
  /** Consumers have come, or all of them are gone. */
  readonly changed: () => void
  /** Whether this process still owns the shard. If not, nothing is handed out: the new owner does that. */
  readonly mayDeliver: () => boolean
  /** The messages that consumers may have in all destinations of the process, one each. */
  readonly leases: ByteShare
}

/** One message for a consumer. */
interface Offered {
  readonly message: PulledMessage
  readonly leaseMs: number
  /** It is on its way to a consumer: its lease begins. Called at most once, before any end but `returned`. */
  readonly handedOut: () => void
  /** Called once, perhaps before `offer` returns. */
  readonly done: (ending: PullEnding) => void
}

/** A consumer's call that is not answered yet, and what is gathered for it. */
interface Poll {
  readonly max: number
  readonly room: number
  readonly answer: (pulled: Pulled) => void
  readonly gathered: Array<Offered>
  bytes: number
  stopWaiting: () => void
}

/** The messages of one answer: their leases end together. */
interface Batch {
  readonly leasedAt: number
  left: number
  stopTimer: () => void
}

interface Lease {
  readonly done: (ending: PullEnding) => void
  readonly batch: Batch
}

/** An attempt that is being recorded as a consumer has settled it. */
interface Settled {
  readonly refusal: boolean
  readonly waiting: Array<(isSettled: boolean) => void>
}

const refused = (why: Pulled["refused"]): Pulled => ({ messages: [], leased_until: 0, refused: why })

/**
 * The actor's end of the calls by which consumers fetch its events: the calls that wait, and the messages that consumers have.
 * Nothing here is stored: what is lost with the process is still due in SQL, and is handed out again with the same ids.
 */
export class Polls implements Consumers {
  readonly #host: PollsHost
  readonly #open: Array<Poll> = []
  readonly #leases = new Map<string, Lease>()
  /** By receipt: what is being recorded, and whether a recorded one was refused. */
  readonly #settling = new Map<string, Settled>()
  readonly #settled = new Map<string, boolean>()
  #isUsed = true
  #areThere = false
  #isFlushing = false
  #stopLingering = (): void => {}

  constructor(host: PollsHost) {
    this.#host = host
  }

  get areThere(): boolean {
    return this.#areThere
  }

  get demand(): number {
    let demand = 0
    for (const { max } of this.#open) demand += max
    const { leases } = this.#host
    const atMost = Math.min(demand, maxLeased - this.#leases.size)
    return leases.hasRoom(atMost) ? atMost : leases.hasRoom(1) ? 1 : 0
  }

  /** Sets whether the destination exists and is of a type whose events are fetched. */
  configure(isUsed: boolean): void {
    this.#isUsed = isUsed
    if (!isUsed) for (const poll of this.#open.slice()) this.#end(poll, refused("gone"))
  }

  /** A consumer asks. `answer` is called once; the returned function withdraws the call. */
  pull({ max, room, wait_ms }: Pulling, answer: (pulled: Pulled) => void): () => void {
    if (!this.#isUsed || this.#open.length >= maxPolls) {
      answer(refused(this.#isUsed ? "busy" : "gone"))
      return () => {}
    }
    const poll: Poll = { max, room, answer, gathered: [], bytes: 0, stopWaiting: () => {} }
    this.#open.push(poll)
    poll.stopWaiting = this.#host.after(wait_ms, () => this.#flush(poll))
    this.#stopLingering()
    this.#come(true)
    this.#host.asked()
    return () => this.#end(poll, null)
  }

  /** Gives a message to the call that has waited longest. */
  offer(offered: Offered): void {
    const bytes = offered.message.body.length
    for (const poll of this.#open.slice()) {
      if (poll.gathered.length > 0 && poll.bytes + bytes > poll.room) {
        this.#flush(poll)
        continue
      }
      poll.gathered.push(offered)
      poll.bytes += bytes
      if (poll.gathered.length >= poll.max) this.#flush(poll)
      else this.#flushSoon()
      return
    }
    offered.done({ kind: "returned" })
  }

  /** A consumer settles messages. `then` gets the receipts that are settled as it says, when all are recorded. */
  settle({ receipts, refusal }: Settling, then: (settled: ReadonlyArray<string>) => void): void {
    const wanted = [...new Set(receipts)]
    const settled = new Set<string>()
    let left = 1
    const arrived = (): void => {
      if (--left === 0) then(wanted.filter((receipt) => settled.has(receipt)))
    }
    for (const receipt of wanted) {
      const lease = this.#leases.get(receipt)
      if (lease !== undefined) this.#settling.set(receipt, { refusal: refusal !== null, waiting: [] })
      const settling = this.#settling.get(receipt)
      if (settling?.refusal === (refusal !== null)) {
        left++
        settling.waiting.push((isSettled) => {
          if (isSettled) settled.add(receipt)
          arrived()
        })
      } else if (this.#settled.get(receipt) === (refusal !== null)) settled.add(receipt)
      if (lease === undefined) continue
      const { leasedAt } = lease.batch
      this.#release(receipt, lease)
      lease.done(refusal === null ? { kind: "acknowledged", leasedAt } : { kind: "refused", leasedAt, reason: refusal })
    }
    arrived()
  }

  /** Nothing more happens for an attempt. `isRecorded`: it is recorded as its end says. */
  over(receipt: string, isRecorded: boolean): void {
    const settling = this.#settling.get(receipt)
    if (settling === undefined) return
    this.#settling.delete(receipt)
    if (isRecorded) {
      this.#settled.set(receipt, settling.refusal)
      for (const oldest of this.#settled.keys()) {
        if (this.#settled.size <= maxSettled) break
        this.#settled.delete(oldest)
      }
    }
    for (const then of settling.waiting) then(isRecorded)
  }

  /** The actor ends. */
  stop(): void {
    this.#isUsed = false
    for (const poll of this.#open.slice()) this.#end(poll, refused(null))
    this.#stopLingering()
    for (const [receipt, lease] of this.#leases) {
      this.#release(receipt, lease)
      lease.done({ kind: "abandoned" })
    }
  }

  #come(areThere: boolean): void {
    if (this.#areThere === areThere) return
    this.#areThere = areThere
    this.#host.changed()
  }

  /** Messages that are started in one go are handed out in one answer. */
  #flushSoon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    queueMicrotask(() => {
      this.#isFlushing = false
      for (const poll of this.#open.slice()) if (poll.gathered.length > 0) this.#flush(poll)
    })
  }

  /** Answers a call with what is gathered for it. */
  #flush(poll: Poll): void {
    if (poll.gathered.length > 0 && !this.#host.mayDeliver()) return this.#end(poll, refused(null))
    const leasedAt = this.#host.now()
    const gathered = poll.gathered.splice(0)
    const leaseMs = gathered[0]?.leaseMs ?? 0
    if (gathered.length > 0) this.#lease(gathered, leasedAt, leaseMs)
    this.#end(poll, {
      messages: gathered.map(({ message }) => message),
      leased_until: leasedAt + leaseMs,
      refused: null
    })
    for (const { handedOut } of gathered) handedOut()
  }

  #lease(gathered: ReadonlyArray<Offered>, leasedAt: number, leaseMs: number): void {
    const batch: Batch = { leasedAt, left: gathered.length, stopTimer: () => {} }
    this.#host.leases.hold(gathered.length)
    for (const { done, message } of gathered) this.#leases.set(message.receipt, { done, batch })
    batch.stopTimer = this.#host.after(leaseMs, () => {
      for (const [receipt, lease] of this.#leases) {
        if (lease.batch !== batch) continue
        this.#release(receipt, lease)
        lease.done({ kind: "expired", leasedAt })
      }
    })
  }

  /** Closes a call; what was gathered and is not in the answer is put back. Null: nobody waits for an answer. */
  #end(poll: Poll, answer: Pulled | null): void {
    const at = this.#open.indexOf(poll)
    if (at < 0) return
    this.#open.splice(at, 1)
    poll.stopWaiting()
    if (answer !== null) poll.answer(answer)
    // In reverse order, so that the message that was offered first is the first again.
    for (const { done } of poll.gathered.splice(0).toReversed()) done({ kind: "returned" })
    if (this.#open.length === 0) this.#stopLingering = this.#host.after(lingerMs, () => this.#come(false))
  }

  #release(receipt: string, { batch }: Lease): void {
    this.#leases.delete(receipt)
    this.#host.leases.release(1)
    if (--batch.left === 0) batch.stopTimer()
  }
}
