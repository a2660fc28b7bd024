import { Effect } from "effect"
import { actors } from "../Hints.ts"
import { HandoverEntity } from "./HandoverProtocol.ts"

/** Gives each destination its batch. One that has gone to another runner meanwhile is told there that there is something to be read. */
export const layer = HandoverEntity.toLayer(
  Effect.map(actors, ({ take }) =>
    HandoverEntity.of({
      Take: ({ payload }) => Effect.suspend(() => take(payload.handover.batches))
    })
  ),
  { concurrency: "unbounded" }
)
