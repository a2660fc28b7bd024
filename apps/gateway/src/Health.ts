import { Effect, type Layer } from "effect"
import { Sharding, ShardId } from "effect/cluster"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import type { Role } from "./Settings.ts"

const databasePatience = "2 seconds"

/**
 * `GET /healthz`: the process lives. `GET /readyz`: it can do its work: the database answers, and a process that runs
 * actors holds shards (one that has just joined may hold none until the others hand some over).
 */
export const layer = (
  role: Role
): Layer.Layer<never, never, HttpRouter.HttpRouter | Sharding.Sharding | SqlClient.SqlClient> =>
  HttpRouter.use(
    Effect.fnUntraced(function* (router) {
      const sharding = yield* Sharding.Sharding
      const sql = yield* SqlClient.SqlClient
      yield* router.add("GET", "/healthz", HttpServerResponse.jsonUnsafe({ ok: true }))
      yield* router.add(
        "GET",
        "/readyz",
        Effect.gen(function* () {
          const database = yield* sql`select 1`.pipe(Effect.timeout(databasePatience), Effect.isSuccess)
          let shards = 0
          for (let id = 1; id <= shardsPerGroup; id++) {
            if (sharding.hasShardId(ShardId.make("default", id))) shards++
          }
          const ok = database && (role === "edge" || shards > 0)
          return HttpServerResponse.jsonUnsafe({ ok, role, database, shards }, { status: ok ? 200 : 503 })
        })
      )
    })
  )
