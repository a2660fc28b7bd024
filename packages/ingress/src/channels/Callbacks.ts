import type { ServerResponse } from "node:http"
import { Cause, type Clock, Data, Effect, Option } from "effect"
import type { SqlError } from "effect/sql"
import type { Adapter, CallbackMessage, Notification } from "@tidegate/channels/Adapter"
import type { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { inSlices, isBudgetSpent, laterTurn, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { type CalledSubscription, isLiving } from "@tidegate/storage/channels/Notifications"
import { refusalOf } from "@tidegate/storage/channels/Refusals"
import type { Bodies } from "../Bodies.ts"
import { reply } from "../handler/Exchange.ts"
import type { Refusals } from "../handler/Refusals.ts"
import type { FramedMessage } from "../wire/FramedMessage.ts"
import { type CallbackTarget, readCallbackTarget } from "./CallbackTarget.ts"
import type { Called, CalledSubscriptions } from "./CalledSubscriptions.ts"
import type { CallbackTelemetry } from "./CallbackTelemetry.ts"

/** Callbacks that one process stores at once, and those of one team that may wait for that. */
const atOnce = { permits: 4, maxWaiting: 64 }

/** Providers for whose protocol 410 ends a subscription. All others get 404, and repeat it or not as they like. */
const endedByGone: ReadonlySet<string> = new Set(["websub"])

/** The adapter that a subscription was made with, and the pair key of its trigger. */
export interface CalledAdapter {
  readonly adapter: Adapter
  readonly pairKey: string
}

interface Needs {
  readonly bodies: Bodies
  readonly clock: Clock.Clock
  readonly dispatcher: Pick<Dispatcher["Service"], "channel">
  readonly refusals: Refusals
  /** Null: the source has other settings by now, and the subscription is going to be stopped. */
  readonly adapterOf: (called: CalledSubscription) => CalledAdapter | null
  readonly run: (effect: Effect.Effect<void>) => void
  readonly subscriptions: CalledSubscriptions["Service"]
  readonly telemetry: CallbackTelemetry
}

/** A callback that is stored. `isDue`: the channel's actor has something to do by it. */
interface Taken {
  readonly notification: Notification
  readonly isDue: boolean
}

/** Why a callback is not stored. */
class Refused extends Data.TaggedError("Refused")<{ readonly why: "unknown" | "ended" | "full" | "unreadable" }> {}

/**
 * Takes what providers send to the callbacks of subscriptions: finds the subscription by the token, reads the body, has the adapter say
 * what it means, stores that, answers, and wakes the channel's actor.
 */
export class Callbacks {
  readonly #needs: Needs
  /** Teams take turns, so that a provider of one team that floods it delays no other. */
  readonly #turns = permitsByKey(atOnce)

  constructor(needs: Needs) {
    this.#needs = needs
  }

  /** Handles a request whose path begins with `channelPath`. */
  admit(message: FramedMessage, response: ServerResponse): void {
    const { bodies, refusals, run, subscriptions, telemetry } = this.#needs
    const target = readCallbackTarget(message.url ?? "")
    if (target === null) return this.#unknown(message, response)
    if (message.method !== "GET" && message.method !== "POST") {
      message.discard(response)
      telemetry.refused("method")
      return refusals.method(response, "GET, POST")
    }
    if (bodies.isFull) {
      message.discard(response)
      telemetry.refused("shed")
      return refusals.shed(response, "bodies_full")
    }
    const known = subscriptions.get(target.token)
    if (known !== undefined) return this.#admit(known, target, message, response)
    run(
      Effect.match(subscriptions.load(target.token), {
        onSuccess: (called) => this.#admit(called, target, message, response),
        onFailure: () => {
          message.discard(response)
          telemetry.refused("shed")
          refusals.shed(response, "database")
        }
      })
    )
  }

  #unknown(message: FramedMessage, response: ServerResponse): void {
    message.discard(response)
    this.#needs.telemetry.refused("unknown")
    this.#needs.refusals.unknownCallback(response)
  }

  /** The subscription has ended: nothing of it is read. */
  #ended({ adapter }: CalledSubscription, message: FramedMessage, response: ServerResponse): void {
    message.discard(response)
    this.#needs.telemetry.refused("ended")
    this.#needs.refusals.endedCallback(response, endedByGone.has(adapter))
  }

  #admit(called: Called, target: CallbackTarget, message: FramedMessage, response: ServerResponse): void {
    const { bodies, refusals, telemetry } = this.#needs
    if (called === null) return this.#unknown(message, response)
    if (called === "unreadable") {
      message.discard(response)
      telemetry.refused("shed")
      return refusals.shed(response, "database")
    }
    // After its end only the provider's question whether to end it is read.
    if (!isLiving(called) && message.method !== "GET") return this.#ended(called, message, response)
    const reading = bodies.read(message, called.source_id, maxRequestBody, (outcome) => {
      if (outcome.kind !== "whole") {
        // The rest of the body is not read: the connection ends with the answer.
        response.setHeader("connection", "close")
        message.discard(response)
        if (outcome.kind === "too large") {
          telemetry.refused("too_large")
          return refusals.tooLarge(response, maxRequestBody)
        }
        telemetry.refused(outcome.kind === "full" ? "shed" : "busy")
        return outcome.kind === "full" ? refusals.shed(response, "bodies_full") : refusals.crowded(response)
      }
      this.#take(called, target, messageOf(message, target, outcome.body, this.#now), message, response)
    })
    if (reading && message.headers.expect !== undefined && message.httpVersionMinor > 0) response.writeContinue()
  }

  get #now(): number {
    return this.#needs.clock.currentTimeMillisUnsafe()
  }

  /** Stores what the message means, then answers. The body counts as held until then. */
  #take(
    called: CalledSubscription,
    target: CallbackTarget,
    given: CallbackMessage,
    message: FramedMessage,
    response: ServerResponse
  ): void {
    const { bodies, dispatcher, refusals, run, telemetry } = this.#needs
    bodies.keep(given.body.length)
    run(
      this.#store(called, target, given).pipe(
        Effect.matchCause({
          onSuccess: ({ isDue, notification }) => {
            telemetry.taken(called, notification, given.receivedAt)
            reply(response, { headers: {}, ...notification.reply })
            if (isDue) dispatcher.channel(called.source_id)
          },
          onFailure: (cause) => {
            const error = Option.getOrNull(Cause.findErrorOption(cause))
            if (error === null || (error._tag === "GatewayError" && error.code !== "QUEUE_UNAVAILABLE")) {
              telemetry.refused("failed")
              return refusals.fault(response, Cause.squash(cause))
            }
            const why = error._tag === "Refused" ? error.why : "database"
            if (why === "unknown") return this.#unknown(message, response)
            if (why === "ended") return this.#ended(called, message, response)
            telemetry.refused("shed")
            refusals.shed(response, why === "full" ? "callbacks_full" : "database")
          }
        }),
        Effect.ensuring(Effect.sync(() => bodies.keep(-given.body.length)))
      )
    )
  }

  #store(
    called: CalledSubscription,
    { token }: CallbackTarget,
    message: CallbackMessage
  ): Effect.Effect<Taken, Refused | GatewayError | SqlError.SqlError> {
    const { subscriptions } = this.#needs
    const receive = (of: CalledSubscription) => this.#receive(of, message)
    const turn = this.#turns.within(called.team_id)
    return Effect.gen(function* () {
      let found = yield* receive(called)
      // The subscription may have got its ids, or its source other settings, since it was remembered.
      if (refusalOf(found.notification) !== null) {
        const now = yield* subscriptions.load(token)
        if (now === null) return yield* new Refused({ why: "unknown" })
        if (now === "unreadable") return yield* new Refused({ why: "unreadable" })
        found = yield* receive(now)
        const refusal = refusalOf(found.notification)
        if (refusal !== null) {
          if (!isLiving(now)) return yield* new Refused({ why: "ended" })
          yield* subscriptions.refuse({ ...refusal, called, receivedAt: message.receivedAt })
          return { notification: found.notification, isDue: false }
        }
      }
      const { notification, pairKey } = found
      if (notification.kind === "ping" || notification.kind === "rejected") return { notification, isDue: false }
      const arrived = { notification, pairKey, receivedAt: message.receivedAt }
      const stored = yield* turn(subscriptions.store(called, arrived), new Refused({ why: "full" }))
      return stored === "ended" ? yield* new Refused({ why: "ended" }) : { notification, isDue: stored.isDue }
    })
  }

  /** What the adapter says. It may read a long body in parts, so that others do not wait for it. */
  #receive(
    called: CalledSubscription,
    message: CallbackMessage
  ): Effect.Effect<{ readonly notification: Notification; readonly pairKey: string }, Refused> {
    const { adapterOf } = this.#needs
    return Effect.gen(function* () {
      const of = adapterOf(called)
      if (of === null) return yield* new Refused({ why: "ended" })
      if (isBudgetSpent()) yield* laterTurn
      const since = performance.now()
      const received = of.adapter.receive(called, called.inputs, message)
      if (!("kind" in received)) return { notification: yield* inSlices(received), pairKey: of.pairKey }
      yield* yieldIfSpent(since)
      return { notification: received, pairKey: of.pairKey }
    })
  }
}

const messageOf = (
  { headers, method }: FramedMessage,
  { query }: CallbackTarget,
  body: Uint8Array,
  receivedAt: number
): CallbackMessage => ({
  method: method ?? "POST",
  query,
  headers: Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]
    )
  ),
  body,
  receivedAt
})
