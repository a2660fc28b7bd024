import { Context, Effect, Layer, Schedule } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { RedisStatus } from "@tidegate/coordination/Coordination"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import { Standing } from "@tidegate/entities/Standby"
import * as Database from "@tidegate/storage/Database"
import type { Role } from "./Settings.ts"

interface Readiness {
  readonly ok: boolean
  readonly database: boolean
  readonly shards: number
  /** Whether other processes of the host hold all shards, because they can do the work. */
  readonly standby: boolean
}

/** Whether this process can work: the database answers, and a process that runs actors holds shards or is on standby. */
const readiness = (role: Role): Effect.Effect<Readiness, never, Sharding.Sharding | Database.Database> =>
  Effect.gen(function* () {
    const sharding = yield* Sharding.Sharding
    const standby = (yield* Standing).isStandby()
    const database = yield* Database.answers
    let shards = 0
    for (let id = 1; id <= shardsPerGroup; id++) {
      if (sharding.hasShardId(ShardId.make("default", id))) shards++
    }
    return { ok: database && (role === "edge" || shards > 0 || standby), database, shards, standby }
  })

/** Waits until this process can work. */
export class Ready extends Context.Service<Ready, { readonly awaited: Effect.Effect<void> }>()(
  "@tidegate/gateway/Health/Ready"
) {}

export const layerReady = (role: Role): Layer.Layer<Ready, never, Sharding.Sharding | Database.Database> =>
  Layer.effect(
    Ready,
    Effect.map(Effect.context<Sharding.Sharding | Database.Database>(), (stored) => ({
      awaited: readiness(role).pipe(
        Effect.repeat({ until: ({ ok }) => ok, schedule: Schedule.spaced("50 millis") }),
        Effect.provideContext(stored),
        Effect.asVoid
      )
    }))
  )

/**
 * `GET /healthz`: the process is alive. `GET /readyz`: it can work: the database answers, and a process that runs
 * actors holds shards (a new one may have none until other runners hand some over) or is on standby. The state of Redis, if there is one, is only
 * information, because a process works without it.
 */
export const layer = (
  role: Role
): Layer.Layer<never, never, HttpRouter.HttpRouter | Sharding.Sharding | Database.Database | RedisStatus> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const redis = yield* RedisStatus
      const stored = yield* Effect.context<Sharding.Sharding | Database.Database>()
      yield* router.add("GET", "/healthz", HttpServerResponse.jsonUnsafe({ ok: true }))
      yield* router.add(
        "GET",
        "/readyz",
        Effect.gen(function* () {
          const { database, ok, shards, standby } = yield* Effect.provideContext(readiness(role), stored)
          const answers = redis.answers()
          const shared = answers === null ? {} : { redis: answers }
          return HttpServerResponse.jsonUnsafe(
            { ok, role, database, shards, standby, ...shared },
            { status: ok ? 200 : 503 }
          )
        })
      )
    })
  )
