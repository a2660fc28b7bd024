import { Clock, Effect } from "effect"
import { type Moved, RunJournal } from "@tidegate/storage/RunJournal"
import type { DueRun } from "@tidegate/storage/Runs"
import type { RunState } from "@tidegate/workflows/Run"
import { abandoned } from "./RunRecord.ts"

/** How long a run is left alone that cannot even be ended (ms). */
const againAfter = 3_600_000

/**
 * Ends a run that cannot go on as it is stored: it would be taken on again and again, and keep others from their turn. `run`: with the parts that
 * are stored of it; `state`: what these come to, where that is known. Where the database refuses its end, too, the run stays as it is and is put
 * off: one try an hour costs nobody anything, and tells of itself in the log until somebody mends what is stored.
 */
export const giveUp = Effect.fnUntraced(function* (
  run: DueRun,
  error: { readonly code: string; readonly message: string },
  state: RunState | null = null
): Effect.fn.Return<Moved, never, RunJournal> {
  const journal = yield* RunJournal
  const now = yield* Clock.currentTimeMillis
  const moved = yield* journal.move(abandoned(run, error, now, state))
  if (moved === "refused") yield* journal.putOff(run.id, now + againAfter)
  return moved
})
