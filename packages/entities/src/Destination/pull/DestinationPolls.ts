import { Effect } from "effect"
import { Polls, type PollsHost } from "./Polls.ts"
import type { Pulled, Pulling, Settling } from "./PullProtocol.ts"
import { receiptOf } from "./PulledMessage.ts"

const gone: Pulled = { messages: [], leased_until: 0, refused: "gone" }

/** The calls of a destination's consumers, which exist once the destination is of a type whose events are fetched. */
export class DestinationPolls {
  readonly #host: PollsHost
  #polls: Polls | null = null

  constructor(host: PollsHost) {
    this.#host = host
  }

  get current(): Polls | null {
    return this.#polls
  }

  /** Sets whether the destination is of a type whose events are fetched. */
  configure(isUsed: boolean): void {
    if (isUsed) this.#polls ??= new Polls(this.#host)
    this.#polls?.configure(isUsed)
  }

  pull(pulling: Pulling): Effect.Effect<Pulled> {
    return Effect.callback<Pulled>((resume) => {
      if (this.#polls === null) return resume(Effect.succeed(gone))
      const withdraw = this.#polls.pull(pulling, (pulled) => resume(Effect.succeed(pulled)))
      return Effect.sync(withdraw)
    })
  }

  settle(settling: Settling): Effect.Effect<ReadonlyArray<string>> {
    return Effect.callback<ReadonlyArray<string>>((resume) => {
      if (this.#polls === null) return resume(Effect.succeed([]))
      this.#polls.settle(settling, (settled) => resume(Effect.succeed(settled)))
    })
  }

  /** Nothing more happens for the next attempt of an event, which has so many. `isRecorded`: it is recorded as it has ended. */
  over(eventId: string, attempts: number, isRecorded: boolean): void {
    this.#polls?.over(receiptOf(eventId, attempts + 1), isRecorded)
  }

  /** The actor ends; the next owner hands out again what consumers have. */
  stop(): void {
    this.#polls?.stop()
  }
}
