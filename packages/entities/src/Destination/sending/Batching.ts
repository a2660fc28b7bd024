import type { Effect, Fiber } from "effect"
import type { AttemptFacts, BatchCalls, BatchPart, HttpSender, Sender } from "@tidegate/connectors/Connector"
import { Batcher } from "@tidegate/runtime/Batcher"
import type { Attempt, Outcome } from "./Attempt.ts"

/** An attempt with what a call has of its event. */
export interface Member {
  readonly attempt: Attempt
  readonly part: BatchPart
  readonly facts: AttemptFacts
  /** Ends the attempt with its part of the target's answer. Does not throw. */
  readonly ended: (answer: Outcome, judge: HttpSender["judge"]) => void
}

interface Gathered {
  readonly member: Member
  readonly bytes: number
}

/** A sender that sends several events with one call. */
export type BatchSender = HttpSender & { readonly batch: BatchCalls }

export const isBatchSender = (sender: Sender): sender is BatchSender =>
  sender.kind === "http" && sender.batch !== undefined

/** Collects attempts for calls. Only attempts of one sender are together, because a sender has one version of the destination's settings. */
export class Batching {
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #send: (sender: BatchSender, members: ReadonlyArray<Member>) => void
  #last: { readonly sender: BatchSender; readonly batcher: Batcher<Gathered> } | null = null

  /** `send` gets the members of each call once. */
  constructor(
    run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>,
    send: (sender: BatchSender, members: ReadonlyArray<Member>) => void
  ) {
    this.#run = run
    this.#send = send
  }

  add(sender: BatchSender, member: Member): void {
    if (this.#last?.sender !== sender) {
      this.#last?.batcher.flush()
      const batcher = new Batcher<Gathered>(sender.batch.limits, this.#run, (gathered) =>
        this.#send(
          sender,
          gathered.map(({ member }) => member)
        )
      )
      this.#last = { sender, batcher }
    }
    this.#last.batcher.add({ member, bytes: member.part.bytes })
  }
}
