import { Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { retain, type RetentionDefaults } from "@tidegate/storage/retention/Retention"
import { metrics } from "@tidegate/telemetry/Metrics"

/** A runner that has just taken over has more urgent work. When the owner keeps changing, retention does not begin at all. */
const patience = "1 minute"

/**
 * Runs retention on one runner of the cluster, once an hour. When a run fails or its runner is lost, the next run does the rest,
 * on whichever runner that is.
 */
export const layer = (defaults: RetentionDefaults) =>
  Singleton.make(
    "Retention",
    retain(defaults).pipe(
      Effect.tap((done) =>
        Effect.sync(() => Object.entries(done).forEach(([what, n]) => metrics.retained.at(what).add(n)))
      ),
      Effect.tap((done) =>
        Object.values(done).some((count) => count > 0) ? Effect.logInfo("retention", done) : Effect.void
      ),
      Effect.catchCause((cause) => Effect.logWarning("retention was cut off; the next run goes on", cause)),
      Effect.repeat(Schedule.spaced("1 hour")),
      Effect.delay(patience),
      Effect.asVoid
    )
  )
