import { Clock, Effect, Redacted, Result, Semaphore } from "effect"
import { Entity } from "effect/cluster"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { SourceHealth } from "@tidegate/model/SourceHealth"
import { changeDelivery } from "@tidegate/resources/Delivery"
import { source, type SourceChange, type SourceFields } from "@tidegate/resources/Source"
import { readSourceCounts } from "@tidegate/storage/reads/SourceCounts"
import { Sources } from "@tidegate/storage/control/Sources"
import { query } from "@tidegate/storage/Transaction"
import { actorOf, commandOf } from "../Actor.ts"
import { carryThrough } from "../CarryThrough.ts"
import { settling } from "../Settle.ts"
import { makeIngestLimiter } from "../limits/IngestLimiter.ts"
import { SourceEntity } from "./SourceProtocol.ts"

/**
 * Stores an announced secret as the source's, once. A source that has a secret keeps it: otherwise anyone who can reach the
 * source could announce another.
 */
const rememberSecret =
  (secret: string) =>
  (stored: SourceFields): Result.Result<SourceChange, GatewayError> => {
    const known = stored.auth["webhook_secret_key"]
    if (known === secret) return Result.succeed({ ...stored, auth: "unchanged" })
    return known === undefined
      ? Result.succeed({ ...stored, auth: Object.assign({}, stored.auth, { webhook_secret_key: secret }) })
      : Result.fail(fail("SOURCE_AUTH_FAILED", "the source has another secret already"))
  }

/** The source's actor: its commands, its ingest limit, and how it is doing. */
export const layer = SourceEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sources = yield* Sources
    const settle = yield* settling
    const limiter = yield* makeIngestLimiter(id)
    const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
    const around = <A, E, R>(command: Effect.Effect<A, E, R>) =>
      Effect.ensuring(oneAtATime(command), Effect.sync(limiter.changed))

    const health = Effect.fnUntraced(function* (team_id: string) {
      const { config } = yield* sources.get(team_id, id)
      const now = yield* Clock.currentTimeMillis
      const { accepted, lastRequestAt, limited, rejected } = yield* query(readSourceCounts(id, now))
      const { current, limit } = yield* query(limiter.status)
      return {
        source_id: id,
        accepted_24h_count: accepted,
        rejected_24h_count: rejected,
        limited_24h_count: limited,
        last_request_at: lastRequestAt?.toISOString() ?? null,
        rate_limit: config.rate_limit,
        rate_limit_period: config.rate_limit_period,
        period:
          current === null || limit === null
            ? null
            : {
                leased: current.leased,
                remaining: Math.max(0, limit - current.leased),
                processes: current.processes,
                ends_at: new Date(now + current.remainingMs).toISOString()
              }
      } satisfies SourceHealth
    })

    return SourceEntity.of({
      ...(yield* actorOf<typeof source, never>(source, sources, { settle, around })),
      RememberSecret: ({ payload: { secret, team_id } }) =>
        around(
          carryThrough(sources.update(team_id, id, rememberSecret(Redacted.value(secret)), { afterCommit: settle }))
        ),
      ChangeDelivery: ({ payload }) => {
        const command = { ...commandOf(payload), afterCommit: settle }
        return around(carryThrough(sources.update(payload.team_id, id, changeDelivery(payload.input, id), command)))
      },
      Lease: ({ payload }) => carryThrough(query(limiter.lease(payload))),
      Take: ({ payload: { team_id } }) => carryThrough(query(limiter.take(team_id))),
      Health: ({ payload: { team_id } }) => carryThrough(health(team_id))
    })
  }),
  // A lease must not wait for a command, because a command waits for other processes.
  { concurrency: "unbounded" }
)
