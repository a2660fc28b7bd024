import { Clock, Effect, Exit } from "effect"
import type { SqlError } from "effect/sql"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import type { Database } from "@tidegate/storage/Database"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { giveTurns, isLimited, maxWaitingRuns } from "@tidegate/storage/workflows/RunTurns"
import type { StepError } from "@tidegate/workflows/StepKind"
import { makeRatePermits, type StepPermits } from "../limits/RatePermits.ts"
import { placesOf } from "./KeysOf.ts"

/** How soon (ms) to ask again when permits are being stored. Usually their storing wakes the workflow before. */
const permitsAfter = 1_000

export const tooManyWaiting: StepError = {
  code: "TOO_MANY_WAITING",
  message: `${maxWaitingRuns} runs of the workflow wait to begin`
}

interface Pacing {
  readonly pacer: Pacer
  readonly permits: StepPermits
}

/** Of due runs, those that begin now, and those that end at once. The others wait. */
export interface Admitted {
  readonly begin: ReadonlyArray<DueRun>
  readonly refused: ReadonlyArray<string>
  /** Whether other runs are due now. */
  readonly more: boolean
}

/**
 * The turns of one workflow's runs: how many there are at once, and how many begin in a period. A workflow without such limits costs
 * nothing here. `changed`: called when more runs may begin, to be followed by `give`. `waits`: called with the time (Unix ms) at which a
 * waiting run is due, so that somebody looks then.
 */
export const makeRunTurns = (
  workflowId: string,
  { changed, waits }: { readonly changed: () => void; readonly waits: (at: number) => void }
) => {
  let settings: Pick<WorkflowTriggers, "concurrency" | "rate_limit" | "priority"> | null = null
  let written = ""
  let pacing: Pacing | null = null
  /** Runs that have left this process since the last look. */
  const left = new Set<string>()
  /** Whether all waiting runs are to be looked at: what the process before has left undone, or what changed settings allow. */
  let isDueAll = false
  /** Whether to look although nothing has left. */
  let isDue = false

  const apply = Effect.fnUntraced(function* (
    team_id: string,
    triggers: WorkflowTriggers | null
  ): Effect.fn.Return<void, SqlError.SqlError, Database> {
    const next = triggers !== null && isLimited(triggers) ? triggers : null
    const { concurrency = null, priority = null, rate_limit = null } = next ?? {}
    const text = JSON.stringify([concurrency, rate_limit, priority])
    if (text === written) return
    if (pacing !== null) yield* pacing.permits.close
    pacing = null
    if (rate_limit !== null) {
      const pacer = new Pacer(rate_limit.count, rate_limit.period)
      const { permits, starts } = yield* makeRatePermits({
        id: workflowId,
        team_id,
        pacer,
        changed: () => {
          isDue = true
          changed()
        }
      })
      pacer.remember(starts)
      pacing = { pacer, permits }
    }
    written = text
    settings = next === null ? null : { concurrency, rate_limit, priority }
    left.clear()
    isDueAll = settings !== null
    isDue = false
  })

  /** Of so many runs, how many may begin now. Their permits are used, because the commit that follows lets them begin. */
  const startsAt =
    (now: number) =>
    (wanted: number): { readonly count: number; readonly nextAt: number } => {
      if (pacing === null) return { count: wanted, nextAt: now }
      const { pacer, permits } = pacing
      for (let count = 0; count < wanted; count++) {
        const nextAt = pacer.nextAt(now)
        if (nextAt > now) return { count, nextAt }
        if (!permits.ready()) return { count, nextAt: now + permitsAfter }
        permits.use()
        pacer.take(now)
        pacer.start(now)
      }
      return { count: wanted, nextAt: now }
    }

  /** What is noted now, which is cleared: what is noted while the transaction reads must not be forgotten after it. */
  const noted = Effect.sync(() => {
    const gone = [...left]
    const all = isDueAll
    left.clear()
    isDue = false
    isDueAll = false
    return { gone, all }
  })

  const give = Effect.fnUntraced(function* (asking: ReadonlyArray<DueRun>) {
    const now = yield* Clock.currentTimeMillis
    const placeOf = yield* placesOf(asking, settings ?? { concurrency: null, priority: null })
    // An interruption at any point notes it again: a forgotten turn would be taken for as long as this actor lives.
    return yield* Effect.acquireUseRelease(
      noted,
      ({ all, gone }) =>
        giveTurns({
          workflowId,
          asking: asking.map(({ created_at, id, team_id }) => ({ id, team_id, created_at, ...placeOf(id) })),
          left: gone,
          all,
          now,
          starts: startsAt(now)
        }),
      ({ all, gone }, exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) {
            isDue ||= exit.value?.more ?? false
            if (exit.value !== null && exit.value.lookAt !== null) waits(exit.value.lookAt)
            return
          }
          for (const id of gone) left.add(id)
          isDue = true
          isDueAll ||= all
        })
    )
  })

  return {
    /** The settings as they were read. */
    apply,
    get isLimited(): boolean {
      return settings !== null
    },
    /** A run has left this process's hand: it may have ended. */
    left: (id: string): void => {
      if (settings !== null) left.add(id)
    },
    /** Gives the turns of ended runs to others, which are due then. */
    give: Effect.suspend(() =>
      settings !== null && (left.size > 0 || isDue || isDueAll) ? Effect.asVoid(give([])) : Effect.void
    ),
    /** Runs that have begun need no turn. */
    admit: Effect.fnUntraced(function* (
      due: ReadonlyArray<DueRun>
    ): Effect.fn.Return<Admitted, SqlError.SqlError, Database> {
      const asking = settings === null ? [] : due.filter(({ status }) => status === "queued")
      if (asking.length === 0) return { begin: due, refused: [], more: false }
      const given = yield* give(asking)
      // The settings have changed since they were read: all are read again.
      if (given === null) return { begin: due.filter(({ status }) => status !== "queued"), refused: [], more: true }
      return {
        begin: due.filter(({ id, status }) => status !== "queued" || given.begin.has(id)),
        refused: [...given.refused],
        more: given.others || given.more
      }
    })
  }
}
