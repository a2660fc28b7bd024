import { Effect, type Fiber } from "effect"
import type { AttemptFacts, BatchCalls, BatchPart, HttpSender, Sender } from "@tidegate/connectors/Connector"
import type { Attempt } from "./Attempt.ts"

/** An attempt with what a call has of its event. */
export interface Member {
  readonly attempt: Attempt
  readonly part: BatchPart
  readonly facts: AttemptFacts
}

/** A sender that sends several events with one call. */
export type BatchSender = HttpSender & { readonly batch: BatchCalls }

export const isBatchSender = (sender: Sender): sender is BatchSender =>
  sender.kind === "http" && sender.batch !== undefined

interface Waiting {
  readonly sender: BatchSender
  readonly members: Array<Member>
  bytes: number
  readonly timer: Fiber.Fiber<void>
}

/**
 * Collects attempts until a call is full or the first one has waited long enough. Only attempts of one sender are together, because a sender has
 * one version of the destination's settings. `send` gets each call's members once.
 */
export class Batching {
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #send: (sender: BatchSender, members: ReadonlyArray<Member>) => void
  #waiting: Waiting | null = null

  constructor(
    run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>,
    send: (sender: BatchSender, members: ReadonlyArray<Member>) => void
  ) {
    this.#run = run
    this.#send = send
  }

  add(sender: BatchSender, member: Member): void {
    const { maxBytes, maxCount, maxWaitMs } = sender.batch.limits
    const before = this.#waiting
    if (before !== null && (before.sender !== sender || before.bytes + member.part.bytes > maxBytes)) this.flush()
    const waiting = (this.#waiting ??= {
      sender,
      members: [],
      bytes: 0,
      timer: this.#run(
        Effect.andThen(
          Effect.sleep(maxWaitMs),
          Effect.sync(() => this.flush())
        )
      )
    })
    waiting.members.push(member)
    waiting.bytes += member.part.bytes
    if (waiting.members.length >= maxCount || waiting.bytes >= maxBytes) this.flush()
  }

  /** Sends what waits. */
  flush(): void {
    const waiting = this.#waiting
    if (waiting === null) return
    this.#waiting = null
    waiting.timer.interruptUnsafe()
    this.#send(waiting.sender, waiting.members)
  }
}
