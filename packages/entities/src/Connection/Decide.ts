import { Clock, Effect, Result } from "effect"
import { derivedId, prefixes, sibling } from "@tidegate/model/Ids"
import { inLaterTurn, isBudgetSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Deduplication } from "@tidegate/rules/Deduplication"
import type { SlowRules } from "@tidegate/rules/RuleSet"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { DecidedJob, Fate } from "@tidegate/storage/journal/RoutingRecord"
import { Hand, setAside, type Weighed } from "../InHand.ts"
import { parseLarge, type PendingRequest } from "./PendingRequest.ts"
import { transform, type Transformation, type Transformed, type TransformEnd } from "./Transforming.ts"

/** Work that takes less (ms) does not check the event-loop budget. */
export const unaskedMs = 1

/** The slow rules of a connection, ready to decide. */
export interface Decider {
  readonly connectionId: string
  readonly destinationId: string
  /** Whether deliveries of the connection go through a tunnel. */
  readonly isTunnel: boolean
  readonly slow: SlowRules
  readonly delay: number
  readonly deduplication: Deduplication | null
  readonly windowMs: number
  /** Null when the rules name no transformation, or one that cannot run now. */
  readonly transformation: Transformation | null
  /**
   * Called with the reason when the transformation's code does not suit a reused isolate and is to run in a fresh context for
   * each call.
   */
  readonly pin: (reason: string) => void
}

/** The decision about a request. Null: no decision now; the routing job stays, and the poller brings it back. */
export type Decided = Omit<DecidedJob, "requestId" | "counted"> | null

export const ignored = (eventId: string, cause: string, meta: ReadonlyArray<unknown>): Fate => ({
  kind: "ignored",
  ignoredId: sibling(prefixes.ignoredEvent, eventId),
  cause,
  meta: JSON.stringify(meta)
})

export const nothing = { execution: null, transformed: null, opens: null }

/** The decision when the connection no longer takes requests. */
export const dropped = ({ counted, id }: PendingRequest): DecidedJob => ({
  requestId: id,
  counted,
  fate: { kind: "dropped" },
  ...nothing
})

/** The id of the event that a request becomes. The ignored event and the execution have the same id with another prefix. */
export const eventIdOf = ({ connectionId }: Decider, { id }: PendingRequest): string =>
  derivedId(prefixes.event, id, connectionId)

/** How a routing job is recorded as work in hand. Its id is derived when it is read: small work is hardly ever looked up. */
export const routeOf = (decider: Decider, request: PendingRequest): Weighed => ({
  kind: "route",
  get id() {
    return eventIdOf(decider, request)
  },
  team_id: request.teamId,
  bytes: request.body.length
})

/** What becomes of a request. `made`: the result of its transformation; null: the rules name none. */
const fateOf = (
  { delay, slow, transformation }: Decider,
  { input }: PendingRequest,
  eventId: string,
  made: Transformed | null,
  now: number
): NonNullable<Decided> => {
  const execution = made?.execution ?? null
  if (made?.kind === "failed") {
    const meta = [{ transformation_id: transformation?.id, message: made.message }]
    return { ...nothing, execution, fate: ignored(eventId, "TRANSFORMATION_FAILED", meta) }
  }
  const missed = slow.filter === null ? [] : slow.filter.failingTargets(made?.input ?? input)
  const fate: Fate =
    missed.length > 0 ? ignored(eventId, "FILTERED", missed) : { kind: "event", eventId, dueAt: now + delay }
  return { execution, transformed: made?.data ?? null, opens: null, fate }
}

/** What decisions need of the process. `broke`: a request could not be decided, for an unexpected reason. */
export interface DecidingHost {
  readonly sandbox: Sandbox["Service"]
  readonly now: () => number
  readonly broke: (request: PendingRequest, cause: unknown) => void
}

const nothingBegun = (): void => {}

/**
 * Runs the transformation, then the filters behind it, and calls back, possibly at once: no fiber for each request. The body of the
 * request is small, or parsed already. The returned function cancels; nothing calls back then.
 */
export const decide = (
  { broke, now, sandbox }: DecidingHost,
  decider: Decider,
  request: PendingRequest,
  eventId: string,
  done: (decided: Decided) => void
): (() => void) => {
  const { slow, transformation } = decider
  let isOver = false
  const end = (decided: Decided): void => {
    if (isOver) return
    isOver = true
    done(decided)
  }
  const conclude = (made: Transformed | null): void => {
    let decided: Decided = null
    const since = performance.now()
    try {
      decided = fateOf(decider, request, eventId, made, now())
    } catch (cause) {
      broke(request, cause)
    }
    if (performance.now() - since > unaskedMs) isBudgetSpent(since)
    end(decided)
  }
  if (slow.transform === null) {
    conclude(null)
    return nothingBegun
  }
  if (transformation === null) {
    end(null)
    return nothingBegun
  }
  const fail = (cause: unknown): void => {
    broke(request, cause)
    end(null)
  }
  const ended = (made: TransformEnd): void => {
    if (isOver) return
    if (made.kind === "unavailable") return end(null)
    if (made.kind === "broken") return fail(made.cause)
    if (made.pinned !== null) decider.pin(made.pinned)
    // Filters run on foreign values: not after others have used the budget of this turn.
    if (slow.filter !== null && isBudgetSpent()) inLaterTurn(() => conclude(made))
    else conclude(made)
  }
  try {
    const cancel = transform(sandbox, transformation, request, decider, eventId, ended)
    return () => {
      isOver = true
      cancel()
    }
  } catch (cause) {
    fail(cause)
    return nothingBegun
  }
}

/**
 * Decides about a request while its routing job is recorded as work in hand (`InHand.ts`), if it has to be. Fails closed: when it cannot
 * be recorded, the request waits.
 */
export const decideInHand = Effect.fnUntraced(function* (
  host: DecidingHost,
  decider: Decider,
  request: PendingRequest
): Effect.fn.Return<Decided, never, Database> {
  const hand = yield* Hand
  const eventId = eventIdOf(decider, request)
  const route = routeOf(decider, request)
  const decided = Effect.andThen(
    parseLarge(request),
    Effect.callback<Decided>((resume) => {
      const cancel = decide(host, decider, request, eventId, (decided) => resume(Effect.succeed(decided)))
      return Effect.sync(cancel)
    })
  )
  if (hand.isPlain(route, yield* Clock.currentTimeMillis)) return yield* decided
  const taken = yield* Effect.result(hand.take([route]))
  if (Result.isFailure(taken)) {
    yield* Effect.logWarning("a pending route could not be recorded as work in hand: it waits", {
      connection_id: decider.connectionId,
      error: taken.failure
    })
    return null
  }
  const manner = taken.success(route)
  if (manner !== "set aside") return yield* hand.within(route, manner, decided)
  yield* hand.done(route)
  return { ...nothing, fate: ignored(route.id, setAside.code, [{ message: setAside.message }]) }
})
