import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import type { Pulled, Settling } from "@tidegate/entities/Destination/pull/PullProtocol"
import { wakeUps } from "@tidegate/entities/dispatch/WakeUps"
import { notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { ackBody, nackBody, pullBody } from "@tidegate/resources/PullInput"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { metrics } from "@tidegate/telemetry/Metrics"
import { teamOfPulled } from "@tidegate/storage/teams/Teams"
import { CurrentTeam } from "../contract/Authorization.ts"
import { refuse } from "../Credentials.ts"
import { askOwner, askWhileWaited, type ById, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { bodyMember } from "../tunnels/BodyMember.ts"

/** Calls of one process, and of one of its teams, that wait for messages. */
const waiting = { permits: 512, perKey: 64, maxWaiting: 0 }
/** The time in which the actor reads what is stored (ms). */
const minWaitMs = 500
/** Bytes of bodies in one answer, or one larger body. */
const maxAnswer = 2 * 1024 * 1024
/** The actor answers within the wait; after a fail-over of its runner it takes some seconds longer. */
const graceSeconds = 15

/** The heads are JSON objects already; bodies are added as members. */
const answerOf = ({ leased_until, messages }: Pulled): HttpServerResponse.HttpServerResponse => {
  const written = messages.map(({ body, head }) => `${head.slice(0, -1)},${bodyMember(body)}}`)
  const until = messages.length === 0 ? null : new Date(leased_until).toISOString()
  return HttpServerResponse.text(`{"messages":[${written.join(",")}],"leased_until":${JSON.stringify(until)}}`, {
    contentType: "application/json"
  })
}

/** The handlers of `messageEndpoints`. */
export const messageHandlers = Effect.gen(function* () {
  const client = yield* DestinationEntity.client
  const { wakeDestination } = yield* wakeUps
  const reading = yield* reader
  const places = permitsByKey(waiting)
  let open = 0
  metrics.pullsWaiting.readBy(() => open)
  const counted = <A, E, R>(call: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => void open++),
      () => call,
      () => Effect.sync(() => void open--)
    )

  /** The destination of a call, if it is of the caller's team and of a type whose events are fetched. */
  const asked = Effect.fnUntraced(function* (id: string) {
    const { id: team } = yield* CurrentTeam
    const owner = isId(prefixes.destination, id) ? yield* reading(teamOfPulled(id)) : null
    return owner === team ? { team, destination: client(id) } : yield* notFound("destination", id)
  })

  const settle = Effect.fnUntraced(function* (id: string, settling: Settling) {
    const { destination } = yield* asked(id)
    const settled = new Set(yield* askOwner(destination.Settle(settling)))
    const receipts = [...new Set(settling.receipts)]
    return {
      settled: receipts.filter((receipt) => settled.has(receipt)),
      expired: receipts.filter((receipt) => !settled.has(receipt))
    }
  })

  return {
    pull: Effect.fnUntraced(function* ({ params: { id }, request }: ById & WithBody) {
      const { max = 10, wait_seconds = 0 } = yield* Effect.fromResult(pullBody.judge(yield* readJsonObject(request)))
      const { destination, team } = yield* asked(id)
      const pulling = { max, room: maxAnswer, wait_ms: Math.max(minWaitMs, wait_seconds * 1_000) }
      const pulled = yield* places.within(team)(
        counted(askWhileWaited(destination.Pull(pulling), `${wait_seconds + graceSeconds} seconds`)),
        refuse(1, "too many calls wait for messages")
      )
      if (pulled.refused === "gone") return yield* notFound("destination", id)
      if (pulled.refused === "busy") return yield* refuse(1, "too many calls wait for messages of this destination")
      // The actor stays in memory until the messages are settled: only a message keeps it there.
      if (pulled.messages.length > 0) yield* wakeDestination(id)
      return answerOf(pulled)
    }),
    ack: Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { receipts } = yield* Effect.fromResult(ackBody.judge(yield* readJsonObject(request)))
      return yield* settle(params.id, { receipts, refusal: null })
    }),
    nack: Effect.fnUntraced(function* ({ params, request }: ById & WithBody) {
      const { reason = "no reason given", receipts } = yield* Effect.fromResult(
        nackBody.judge(yield* readJsonObject(request))
      )
      return yield* settle(params.id, { receipts, refusal: reason })
    })
  }
})
