import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Verdict } from "@tidegate/connectors/Connector"
import type { Database } from "@tidegate/storage/Database"
import { heldUntil, longestHoldMs, type Said } from "./TargetHold.ts"

/** Shorter holds (ms) are not stored: they are over by the time that another process goes on. */
const minStoredMs = 5_000
/** Answers that come together say nearly the same: what is stored is moved by this much at least (ms). */
const minMovedMs = 1_000

interface Holding {
  /** For the log: what is held, and which one. */
  readonly what: string
  readonly about: Readonly<Record<string, string>>
  readonly now: () => number
  /** What lets nothing begin before a time (Unix ms, 0: at once). */
  readonly gate: { readonly hold: (until: number) => void; readonly heldUntil: number }
  /** Stores until when. False: that is not stored, as there is no room for it, or something later is. */
  readonly store: (until: number) => Effect.Effect<boolean, SqlError.SqlError, Database>
  readonly run: (effect: Effect.Effect<void, never, Database>) => void
}

/**
 * Holds a destination, or the target of an action, for as long as the target says that it takes nothing more, and has that stored, for whichever
 * process calls it next. A change of the settings lifts the hold: it takes it out of what is stored.
 *
 * What is stored may be lost: then the next process asks the target once, and is told again.
 */
export const makeHolding = ({ about, gate, now, run, store, what }: Holding) => {
  /** What was written last, or is being written; and what is known to be stored. */
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
    /** What a target has answered, before the end of the attempt is told. */
    heard: (said: Said, verdict: Verdict): void => {
      const at = now()
      const until = heldUntil(said, verdict, at)
      if (until === null || until <= gate.heldUntil) return
      gate.hold(until)
      if (until - at >= minStoredMs && until - written >= minMovedMs) write(until, said.status)
    },
    /** To be called before what is stored is read, and then with what it says (Unix ms, 0: nothing). */
    reading: (): ((until: number) => void) => {
      const known = stored
      return (until) => {
        // What was stored while this was read may not be in it, and is not lifted by it.
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
