import { Effect } from "effect"
import type { Acceptance, Accepted, CommittedBy } from "./Accepting.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/** The result of a request at the process that was to commit it; null: unknown, and this process has to commit the request. */
export type Forwarded = Accepted | null

/** Another process of the host, which commits requests that this one has received: requests of several processes share its commits. */
export interface Forwarder {
  /** Whether requests are to be forwarded now. */
  readonly isOn: () => boolean
  /** The results of the requests, in their order. */
  readonly forward: (records: ReadonlyArray<RequestRecord>) => Effect.Effect<ReadonlyArray<Forwarded>>
}

/**
 * Forwards a batch. A request without a result is committed here, by `commitHere`. That changes nothing if the other process has committed it
 * after all, because its id is unique.
 */
export const forwarding =
  (
    forward: Forwarder["forward"],
    answer: (item: Acceptance, outcome: Accepted, by: CommittedBy) => void,
    commitHere: (item: Acceptance) => void
  ) =>
  (items: ReadonlyArray<Acceptance>): Effect.Effect<void> =>
    Effect.map(forward(items.map(({ record }) => record)), (results) => {
      for (const [index, item] of items.entries()) {
        const result = results[index] ?? null
        if (result === null) commitHere({ ...item, done: (outcome) => item.done(outcome, "elsewhere") })
        else answer(item, result, "elsewhere")
      }
    })
