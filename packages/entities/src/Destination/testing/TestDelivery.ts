import { Clock, Deferred, Effect, Result } from "effect"
import { Entity, Sharding } from "effect/cluster"
import type { SessionServices, Verdict } from "@tidegate/connectors/Connector"
import { unsealed } from "@tidegate/connectors/SecretSettings"
import type { Egress } from "@tidegate/egress/Egress"
import type { DestinationTest } from "@tidegate/model/DestinationTest"
import { type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Ingress } from "@tidegate/model/Ingress"
import { destination } from "@tidegate/resources/Destination"
import { type DestinationTestMessage, inDestination } from "@tidegate/resources/DestinationTest"
import { queryOf, type RequestSample } from "@tidegate/resources/RequestParts"
import type { Database } from "@tidegate/storage/Database"
import { type DeliveringDestination, readDeliverySettings } from "@tidegate/storage/delivery/DeliverySettings"
import { readCaptured } from "@tidegate/storage/reads/AttemptRow"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { metrics } from "@tidegate/telemetry/Metrics"
import { shardOf } from "../../Shards.ts"
import { settingsKey } from "../../tokens/Held.ts"
import { inMemory } from "../../tokens/TokenStore.ts"
import { type ConnectionQueueSettings, type DestinationState, openSender, stateOf } from "../DestinationState.ts"
import { tokenStore } from "../DestinationTokens.ts"
import { type DeliveryItem, newItem, payloadOf } from "../queue/DeliveryItem.ts"
import { type Attempt, beginAttempt, type Outcome, unanswered } from "../sending/Attempt.ts"
import { DeliveryRuntime } from "../sending/DeliveryRuntime.ts"
import { makeOpening } from "../sending/Opened.ts"
import { makeSending } from "../sending/Sending.ts"

interface Ended {
  readonly attempt: Attempt
  readonly outcome: Outcome
  readonly verdict: Verdict
}

interface Asked {
  readonly team_id: string
  readonly input: DestinationTestMessage
}

type Services = Database | Egress | Ingress | Secrets | SessionServices

const sampleBody = { message: "This is a test delivery." }

/**
 * Makes one delivery to a destination with settings that are not stored, by the same senders and the same way out as deliveries of
 * events. Nothing is recorded, and no rate of the destination applies.
 */
export const makeTestDelivery = Effect.gen(function* () {
  const { entityId: id } = yield* Entity.CurrentAddress
  const shard = shardOf(yield* Sharding.Sharding, id)
  const clock = yield* Clock.Clock
  const { connectorOf } = yield* DeliveryRuntime
  const ingress = yield* Ingress
  const services = yield* Effect.context<Services>()
  const run = Effect.runForkWith(services)
  const now = (): number => clock.currentTimeMillisUnsafe()

  const storedFor = Effect.fnUntraced(function* (team_id: string) {
    const found = yield* Effect.orDie(readDeliverySettings(id, shard))
    return found === null || found.destination.team_id !== team_id || found.destination.deleted_at !== null
      ? yield* notFound("destination", id)
      : found.destination
  })

  /** The destination as it would be stored. */
  const wouldBe = (
    { input, team_id }: Asked,
    stored: DeliveringDestination | null
  ): Result.Result<DeliveringDestination, GatewayError> => {
    const none = { id, team_id, disabled_at: null, cancel_before: null, deleted_at: null, held_until: null }
    if (stored === null) {
      const situation = { id, now: new Date(now()), ingress }
      return Result.map(destination.create(input.destination, situation), ({ auth, config, name, type }) => ({
        ...none,
        name,
        type,
        ...unsealed({ config, auth })
      }))
    }
    const { auth: storedAuth, config, name, type } = stored
    const change = destination.change(input.destination, { id, now: new Date(now()), ingress })
    return Result.map(change({ name, description: null, type, config, auth: storedAuth ?? {} }), (next) => {
      const isKept = next.auth === "unchanged"
      const { name, type } = next
      // A secret that cannot be read is not replaced by an empty one.
      if (isKept && storedAuth === null) return { ...none, name, type, config: next.config, auth: null }
      return { ...none, name, type, ...unsealed({ config: next.config, auth: isKept ? storedAuth! : next.auth }) }
    })
  }

  /** Tokens of the stored credential stay in its store, because a refresh token is used up. Others are forgotten. */
  const tokensFor = Effect.fnUntraced(function* (state: DestinationState, stored: DeliveringDestination | null) {
    if (stored === null || state.bearer === null) return inMemory()
    const { bearer } = yield* Effect.orDie(openSender(stored, connectorOf))
    const isSame = bearer !== null && settingsKey(bearer.credential) === settingsKey(state.bearer.credential)
    return isSame ? yield* tokenStore : inMemory()
  })

  const delivered = Effect.fnUntraced(function* (
    state: DestinationState,
    stored: DeliveringDestination | null,
    sample: RequestSample
  ) {
    const end = yield* Deferred.make<Ended>()
    const done = (attempt: Attempt, outcome: Outcome, verdict: Verdict): void =>
      void Deferred.doneUnsafe(end, Effect.succeed({ attempt, outcome, verdict }))
    const notMade = (attempt: Attempt): void => {
      const failure = { code: "INTERNAL_ERROR", message: "the gateway could not make this delivery" } as const
      const outcome = unanswered(failure.code, failure.message, attempt.startedAt, now())
      done(attempt, outcome, { ...failure, final: false })
    }
    const opening = yield* makeOpening(yield* Effect.scope, () => true, yield* tokensFor(state, stored))
    const sending = yield* makeSending({
      id,
      opening,
      now,
      run,
      holdsLease: () => true,
      isHeld: () => false,
      heard: () => {},
      ends: { finished: done, abandoned: notMade, returned: notMade, lost: notMade, handedOut: () => {} }
    })
    const apply = yield* opening.prepare(state)
    apply()
    const startedAt = now()
    const item = itemOf(state.teamId, sample, startedAt)
    sending.send(beginAttempt(item, connection, startedAt, null), state, { tunnel: null, polls: null })
    return yield* Effect.ensuring(Deferred.await(end), Effect.sync(sending.cancel))
  }, Effect.scoped)

  return (asked: Asked): Effect.Effect<DestinationTest, GatewayError> =>
    Effect.gen(function* () {
      const stored = asked.input.destination_id === null ? null : yield* storedFor(asked.team_id)
      const next = yield* Effect.fromResult(Result.mapError(wouldBe(asked, stored), inDestination))
      const opened = yield* Effect.orDie(openSender(next, connectorOf))
      const { kind } = opened.sender ?? {}
      if (kind === "tunnel" || kind === "pull") {
        return yield* invalid([
          {
            path: "destination.type",
            message: `cannot be tested: clients fetch the events of ${next.type} destinations`
          }
        ])
      }
      const ended = yield* delivered(stateOf(next, [], opened, connectorOf), stored, asked.input.request)
      metrics.destinationTests.at(ended.verdict === "successful" ? "successful" : "failed").add()
      return answerOf(ended)
    }).pipe(Effect.provideContext(services))
})

/** No connection leads to it: what is sent names none, and nothing is retried. */
const connection: ConnectionQueueSettings = {
  id: "",
  name: "Test delivery",
  sourceName: "Test delivery",
  state: "open",
  cancelBefore: 0,
  resumedAt: 0,
  retry: null
}

const itemOf = (teamId: string, sample: RequestSample, at: number): DeliveryItem => {
  const { body = sampleBody, headers = {}, method = "POST", path = "/" } = sample
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return newItem(
    { id: newId(prefixes.event, at), connectionId: connection.id, dueAt: at, orderingKey: null },
    { teamId, sourceId: "" },
    at,
    payloadOf(
      { method, path, query: queryOf(sample), headers: { "content-type": "application/json", ...lower } },
      {
        id: newId(prefixes.request, at),
        presented: null,
        body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
        verified: false,
        originalIp: null
      }
    )
  )
}

const answerOf = ({ attempt, outcome, verdict }: Ended): DestinationTest => {
  const failure = verdict === "successful" ? null : verdict
  const { body, encoding } = readCaptured(outcome.body.length === 0 ? null : outcome.body)
  const headers = Object.entries(outcome.headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const]
  )
  return {
    successful: failure === null,
    error_code: failure?.code ?? null,
    error_message: failure?.message ?? null,
    response_status: outcome.status,
    response_headers: outcome.status === null ? null : Object.fromEntries(headers),
    body,
    body_encoding: encoding,
    body_truncated: outcome.bodyTruncated,
    requested_url: attempt.url,
    http_method: attempt.method,
    duration_ms: Math.max(0, Math.round(outcome.respondedAt - attempt.startedAt))
  }
}
