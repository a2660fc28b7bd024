import { Effect, Layer } from "effect"
import { Sharding } from "effect/cluster"
import { type Forwarded, Journal, type RequestRecord } from "@tidegate/storage/Journal"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Owners } from "../dispatch/Owners.ts"
import { idOn, shardsPerGroup } from "../Shards.ts"
import { Standing } from "../Standby.ts"
import { CarriedRequests } from "./CarriedRequests.ts"
import { CommitsEntity } from "./CommitsProtocol.ts"

/**
 * How long a sender waits for the active process: much longer than a commit takes. Then this process commits, because accepting a request must
 * not depend on another process.
 */
const deadline = "1500 millis"
/** For this time (ms) after a missed deadline, this process commits all its requests. */
const pauseMs = 5_000

const count = (results: ReadonlyArray<Forwarded>): void => {
  const returned = results.filter((result) => result === null).length
  metrics.forwardedRequests.at("active").add(results.length - returned)
  metrics.forwardedRequests.at("standby").add(returned)
}

/**
 * While this process is on standby, an active one of the same host commits the requests that it receives (`Standby.ts`). So all
 * requests of a host share commits, and the events of a request are already at the process that delivers them.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const commits = yield* CommitsEntity.client
    const journal = yield* Journal
    const owners = yield* Owners
    const sharding = yield* Sharding.Sharding
    const standing = yield* Standing
    let pausedUntil = 0
    const isOn = (): boolean => standing.isStandby() && performance.now() >= pausedUntil

    /** Any shard of an active runner of this host; undefined: there is none. */
    const activeShard = (): number | undefined => {
      for (let shard = 1; shard <= shardsPerGroup; shard++) if (owners.of(shard)?.host === standing.host) return shard
      return undefined
    }

    const forward = (records: ReadonlyArray<RequestRecord>): Effect.Effect<ReadonlyArray<Forwarded>> =>
      Effect.suspend(() => {
        const shard = isOn() ? activeShard() : undefined
        if (shard === undefined) return Effect.succeed([])
        return commits(idOn(sharding, shard))
          .Commit({ requests: new CarriedRequests(records) })
          .pipe(
            Effect.timeout(deadline),
            Effect.map((results) => results.map((result) => (result === "full" ? null : result))),
            Effect.tap((results) => Effect.sync(() => count(results))),
            Effect.catchCause((cause) => {
              pausedUntil = performance.now() + pauseMs
              metrics.forwardedRequests.at("standby").add(records.length)
              return Effect.as(
                Effect.logWarning(
                  "requests are committed here, because the active process did not commit them in time",
                  cause
                ),
                []
              )
            })
          )
      })

    journal.forwardBy({ isOn, forward })
  })
)
