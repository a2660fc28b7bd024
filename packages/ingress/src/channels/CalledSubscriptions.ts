import { Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import {
  type Arrived,
  type CalledSubscription,
  calledSubscriptions,
  type Stored,
  storeNotification
} from "@tidegate/storage/channels/Notifications"
import { type Refusal, storeRefusals } from "@tidegate/storage/channels/Refusals"
import type { Database } from "@tidegate/storage/Database"
import { gathered, inBatches } from "@tidegate/storage/Gathered"
import { hashToken, type Secrets } from "@tidegate/storage/secrets/Secrets"

const maxCached = 20_000
/** Milliseconds for which a subscription is remembered. What is stored by it is checked again in the commit. */
const knownForMs = 1_000
/** Milliseconds for which an unknown token is remembered. Tokens are stored before a provider gets them, so none is missed. */
const unknownForMs = 60_000
/** Bytes of a subscription beside its inputs. */
const perSubscription = 8_000

/**
 * Milliseconds between two statements of a kind. Strangers can send as many wrong callbacks as they like, and each of them needs a
 * look-up, and a line in the counts if its token is right. So a callback waits this long at most while others come too.
 */
const restMs = 50

/** What a token names; null: nothing; "unreadable": its secret cannot be decrypted. */
export type Called = CalledSubscription | "unreadable" | null

/**
 * The subscriptions that callbacks name by their tokens. Look-ups are gathered, and so are refusals: one statement at a time
 * serves all that wait, so a flood of wrong callbacks costs the database a bounded number of statements. What waits is bounded by
 * the connections, each of which has one request at a time.
 */
export class CalledSubscriptions extends Context.Service<
  CalledSubscriptions,
  {
    /** What is remembered of the token; undefined: nothing, call `load`. */
    readonly get: (token: string) => Called | undefined
    /** Reads what the token names now. */
    readonly load: (token: string) => Effect.Effect<Called, SqlError.SqlError>
    /** Stores what has come for a subscription. */
    readonly store: (called: CalledSubscription, arrived: Arrived) => Effect.Effect<Stored, GatewayError>
    /** Stores that a message was refused. */
    readonly refuse: (refusal: Refusal) => Effect.Effect<void, GatewayError>
  }
>()("@tidegate/ingress/CalledSubscriptions") {
  static readonly layer: Layer.Layer<CalledSubscriptions, never, Database | Secrets> = Layer.effect(
    CalledSubscriptions,
    Effect.gen(function* () {
      const database = yield* Effect.context<Database>()
      const read = yield* gathered(calledSubscriptions, { restMs })
      const refuse = yield* inBatches(storeRefusals, { restMs })
      const known = new WeighedCache<string, { readonly called: CalledSubscription; readonly until: number }>(maxCached)
      const unknown = new Map<string, number>()

      return CalledSubscriptions.of({
        get: (token) => {
          const hash = hashToken(token)
          const now = performance.now()
          const remembered = known.get(hash)
          if (remembered !== undefined && now < remembered.until) return remembered.called
          const until = unknown.get(hash)
          if (until === undefined) return undefined
          if (now < until) return null
          unknown.delete(hash)
          return undefined
        },
        load: (token) => {
          const hash = hashToken(token)
          return Effect.map(read([hash]), (found) => {
            const called = found.get(hash) ?? null
            if (called === null) {
              if (unknown.size >= maxCached) unknown.clear()
              unknown.set(hash, performance.now() + unknownForMs)
            }
            if (called === null || called === "unreadable") {
              known.delete(hash)
              return called
            }
            const bytes = perSubscription + 2 * JSON.stringify(called.inputs).length
            known.set(hash, { called, until: performance.now() + knownForMs }, { owner: called.team_id, bytes })
            return called
          })
        },
        store: (called, arrived) => Effect.provideContext(storeNotification(called, arrived), database),
        refuse: (refusal) => refuse([refusal])
      })
    })
  )
}
