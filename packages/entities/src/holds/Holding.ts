import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Verdict } from "@tidegate/connectors/Connector"
import type { Database } from "@tidegate/storage/Database"
import { heldUntil, longestHoldMs, type Said } from "./TargetHold.ts"

/** Shorter holds (ms) are not stored: they are over before another process continues. */
const minStoredMs = 5_000
/** Answers that arrive together name nearly the same time. A stored hold is extended only by at least this time (ms). */
const minMovedMs = 1_000

interface Holding {
  /** For the log: the kind of the held object, and its identity. */
  readonly what: string
  readonly about: Readonly<Record<string, string>>
  readonly now: () => number
  /** Starts nothing before a time (Unix ms, 0: no hold). */
  readonly gate: { readonly hold: (until: number) => void; readonly heldUntil: number }
  /** Stores the end of a hold. False: it was not stored, because the table is full or has a later end. */
  readonly store: (until: number) => Effect.Effect<boolean, SqlError.SqlError, Database>
  readonly run: (effect: Effect.Effect<void, never, Database>) => void
}

/**
 * Holds a destination, or the target of an action, for as long as the target says that it accepts nothing more. The hold is
 * stored for whichever process makes the next call. A change of the settings lifts the hold by deleting it from SQL.
 *
 * A stored hold may be lost. Then the next process calls the target once, and gets the same answer again.
 */
export const makeHolding = ({ about, gate, now, run, store, what }: Holding) => {
  /** `written`: the latest end that was written or is being written. `stored`: the latest that is known to be stored. */
  let written = 0
  let stored = 0

  const write = (until: number, status: number | null): void => {
    written = until
    run(
      store(until).pipe(
        Effect.map((isStored) => {
          if (isStored) stored = Math.max(stored, until)
        }),
        Effect.andThen(
          Effect.logInfo(`${what} is held: its target takes nothing more for now`, {
            ...about,
            response_status: status,
            until: new Date(until).toISOString()
          })
        ),
        Effect.catch((error) => Effect.logWarning(`a hold of ${what} could not be stored`, { ...about, error }))
      )
    )
  }

  return {
    isHeld: (): boolean => gate.heldUntil > now(),
    /** Records a target's answer. Has to be called before the end of the attempt is reported. */
    heard: (said: Said, verdict: Verdict): void => {
      const at = now()
      const until = heldUntil(said, verdict, at)
      if (until === null || until <= gate.heldUntil) return
      gate.hold(until)
      if (until - at >= minStoredMs && until - written >= minMovedMs) write(until, said.status)
    },
    /** Call this before the stored hold is read, and the returned function with the value that was read (Unix ms, 0: no hold). */
    reading: (): ((until: number) => void) => {
      const known = stored
      return (until) => {
        // A hold that was stored during the read may be missing in the result, so that result does not lift it.
        if (stored !== known && until < stored) return
        const isLifted = until === 0 && stored > now()
        stored = until
        if (isLifted) {
          written = 0
          gate.hold(0)
        } else if (until > now() && until > gate.heldUntil) gate.hold(Math.min(until, now() + longestHoldMs))
      }
    }
  }
}
