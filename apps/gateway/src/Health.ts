import { Effect, type Layer } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { RedisStatus } from "@tidegate/coordination/Coordination"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import * as Database from "@tidegate/storage/Database"
import type { Role } from "./Settings.ts"

/**
 * `GET /healthz`: the process is alive. `GET /readyz`: it can work: the database answers, and a process that runs
 * actors holds shards (a new one may have none until other runners hand some over). The state of Redis, if there is one, is only
 * information, because a process works without it.
 */
export const layer = (
  role: Role
): Layer.Layer<never, never, HttpRouter.HttpRouter | Sharding.Sharding | Database.Database | RedisStatus> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const redis = yield* RedisStatus
      const sharding = yield* Sharding.Sharding
      const stored = yield* Effect.context<Database.Database>()
      yield* router.add("GET", "/healthz", HttpServerResponse.jsonUnsafe({ ok: true }))
      yield* router.add(
        "GET",
        "/readyz",
        Effect.gen(function* () {
          const database = yield* Effect.provideContext(Database.answers, stored)
          let shards = 0
          for (let id = 1; id <= shardsPerGroup; id++) {
            if (sharding.hasShardId(ShardId.make("default", id))) shards++
          }
          const answers = redis.answers()
          const shared = answers === null ? {} : { redis: answers }
          const ok = database && (role === "edge" || shards > 0)
          return HttpServerResponse.jsonUnsafe({ ok, role, database, shards, ...shared }, { status: ok ? 200 : 503 })
        })
      )
    })
  )
