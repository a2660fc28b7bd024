import { createHmac } from "node:crypto"
import { Context, Effect, Layer, Redacted } from "effect"
import * as Redis from "effect/persistence/Redis"
import { Feed } from "./Feed.ts"
import { RateLimiter } from "./limits/RateLimiter.ts"
import type { RedisAddress } from "./RedisAddress.ts"
import { connect, RedisConnection, usualDeadlineMs } from "./RedisConnection.ts"
import { RedisFeed } from "./RedisFeed.ts"
import { redisRateLimiter } from "./limits/RedisRateLimiter.ts"

/** Whether the configured Redis answers; null if none is configured. */
export class RedisStatus extends Context.Service<RedisStatus, { readonly answers: () => boolean | null }>()(
  "@tidegate/coordination/RedisStatus"
) {}

/** How long the start of the process waits for Redis (ms). After that it continues without it. */
const startMs = 1_000

/** For this process alone. */
export const layerMemory: Layer.Layer<RateLimiter | Feed | RedisStatus> = Layer.mergeAll(
  RateLimiter.layerMemory,
  Feed.layerMemory,
  Layer.succeed(RedisStatus, { answers: () => null })
)

/**
 * Shared by all processes with the same Redis and the same secret. Redis sees names and numbers only: counted keys (client addresses, users)
 * and channels are stored as keyed hashes, so nobody without the secret can test guessed addresses.
 */
export const layerRedis = (
  address: RedisAddress,
  secret: Redacted.Redacted<Uint8Array>,
  deadlineMs: number = usualDeadlineMs
): Layer.Layer<RateLimiter | Feed | RedisStatus> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const run = Effect.runForkWith(yield* Effect.context())
      const nameOf = (kind: string, text: string): string =>
        `tidegate:${kind}:${createHmac("sha256", Redacted.value(secret)).update(`${kind}:${text}`).digest("base64url").slice(0, 22)}`

      const heard: { started: () => void; gap: () => void } = { started: () => {}, gap: () => {} }
      const started = new Promise<void>((resolve) => (heard.started = resolve))
      const connection = yield* Effect.acquireRelease(
        Effect.sync(
          () =>
            new RedisConnection(address, deadlineMs, {
              up: () => {
                heard.started()
                heard.gap()
                run(Effect.logInfo("Redis answers: limits and feeds are shared"))
              },
              down: (reason) =>
                void run(Effect.logWarning("Redis does not answer: each process goes on alone", { reason }))
            })
        ),
        (made) => Effect.sync(() => made.close())
      )
      const feed = yield* Effect.acquireRelease(
        Effect.sync(() => new RedisFeed(connection, connect(address), (text) => nameOf("feed", text))),
        (made) => Effect.sync(() => made.close())
      )
      heard.gap = () => feed.gap()

      const send = <A>(command: string, ...args: ReadonlyArray<string>) =>
        Effect.tryPromise({
          try: () => connection.send(command, args) as Promise<A>,
          catch: (cause) => new Redis.RedisError({ cause })
        })
      const unused = Effect.fail(new Redis.RedisError({ cause: "one connection is all that is used" }))
      const redis = yield* Redis.make({ send, subscribe: () => unused, connect: unused })

      yield* Effect.timeoutOrElse(
        Effect.promise(() => Promise.all([started, feed.started])),
        {
          duration: startMs,
          orElse: () =>
            Effect.logWarning("Redis does not answer: each process goes on alone", { reason: "not reached" })
        }
      )
      return Context.make(RateLimiter, redisRateLimiter(redis, nameOf)).pipe(
        Context.add(Feed, feed.service),
        Context.add(RedisStatus, { answers: () => connection.answers })
      )
    })
  )
