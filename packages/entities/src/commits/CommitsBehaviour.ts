import { Effect } from "effect"
import { Journal, type RequestRecord } from "@tidegate/storage/Journal"
import { Dispatcher } from "../dispatch/Dispatcher.ts"
import { wakeStored } from "../dispatch/WakeStored.ts"
import { CommitsEntity, type Result } from "./CommitsProtocol.ts"

export const layer = CommitsEntity.toLayer(
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher
    const journal = yield* Journal

    const commit = (record: RequestRecord): Effect.Effect<typeof Result.Type> =>
      Effect.callback((resume) => {
        if (journal.isFull(record.sourceId)) return resume(Effect.succeed("full"))
        journal.accept(record, (outcome, by) => {
          // One that was stored before may have been delivered already: its actors read SQL.
          if (outcome === "committed" && by === "now") wakeStored(dispatcher, record)
          resume(Effect.succeed(outcome))
        })
      })

    return CommitsEntity.of({
      Commit: ({ payload }) => Effect.forEach(payload.requests.records, commit, { concurrency: "unbounded" })
    })
  }),
  { concurrency: "unbounded" }
)
