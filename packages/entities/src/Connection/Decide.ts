import { Cause, Clock, Effect, Result } from "effect"
import { derivedId, prefixes, sibling } from "@tidegate/model/Ids"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { Deduplication } from "@tidegate/rules/Deduplication"
import type { FilterInput } from "@tidegate/rules/Filter"
import type { SlowRules } from "@tidegate/rules/RuleSet"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { DecidedJob, Fate } from "@tidegate/storage/journal/RoutingRecord"
import type { Database } from "@tidegate/storage/Database"
import type { DedupeWindow } from "@tidegate/storage/delivery/RoutingJobs"
import { Hand, setAside, type Weighed } from "../InHand.ts"
import { parseLarge, type PendingRequest } from "./PendingRequest.ts"
import { transform, type Transformation } from "./Transforming.ts"

/** Work that takes less (ms) does not check the event-loop budget. */
const unaskedMs = 1

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
type Decided = Omit<DecidedJob, "requestId" | "counted"> | null

const ignored = (eventId: string, cause: string, meta: ReadonlyArray<unknown>): Fate => ({
  kind: "ignored",
  ignoredId: sibling(prefixes.ignoredEvent, eventId),
  cause,
  meta: JSON.stringify(meta)
})

const nothing = { execution: null, transformed: null, opens: null }

/** The decision when the connection no longer takes requests. */
export const dropped = ({ counted, id }: PendingRequest): DecidedJob => ({
  requestId: id,
  counted,
  fate: { kind: "dropped" },
  ...nothing
})

/** How a routing job is recorded as work in hand: by the id of the event that it becomes. */
const routeOf = (connectionId: string, { body, id, teamId }: PendingRequest): Weighed => ({
  kind: "route",
  id: derivedId(prefixes.event, id, connectionId),
  team_id: teamId,
  bytes: body.length
})

/** Runs the transformation, then the filters behind it. */
const decide = Effect.fnUntraced(function* (
  decider: Decider,
  request: PendingRequest
): Effect.fn.Return<Decided, never, Sandbox> {
  const { connectionId, delay, slow, transformation } = decider
  const { id } = request
  // The ignored event and the execution have the same id with another prefix.
  const eventId = derivedId(prefixes.event, id, connectionId)
  let input: FilterInput = request.input
  let outcome: Omit<DecidedJob, "requestId" | "counted" | "fate"> = nothing
  if (slow.transform !== null) {
    if (transformation === null) return null
    const made = yield* Effect.option(transform(transformation, request, decider, eventId))
    if (made._tag === "None") return null
    if (made.value.pinned !== null) decider.pin(made.value.pinned)
    if (made.value.kind === "failed") {
      const meta = [{ transformation_id: transformation.id, message: made.value.message }]
      const fate = ignored(eventId, "TRANSFORMATION_FAILED", meta)
      return { ...outcome, execution: made.value.execution, fate }
    }
    input = made.value.input
    outcome = { ...outcome, execution: made.value.execution, transformed: made.value.data }
  }
  const since = performance.now()
  const missed = slow.filter === null ? [] : slow.filter.failingTargets(input)
  if (performance.now() - since > unaskedMs) yield* yieldIfSpent(since)
  if (missed.length > 0) return { ...outcome, fate: ignored(eventId, "FILTERED", missed) }
  return { ...outcome, fate: { kind: "event", eventId, dueAt: (yield* Clock.currentTimeMillis) + delay } }
})

/**
 * Decides about a request while its routing job is recorded as work in hand (`InHand.ts`). Fails closed: when it cannot be
 * recorded, the request waits.
 */
const decideInHand = Effect.fnUntraced(function* (
  decider: Decider,
  request: PendingRequest
): Effect.fn.Return<Decided, never, Sandbox | Database> {
  const { connectionId } = decider
  const hand = yield* Hand
  const route = routeOf(connectionId, request)
  if (hand.isPlain(route, yield* Clock.currentTimeMillis)) return yield* decide(decider, request)
  const taken = yield* Effect.result(hand.take([route]))
  if (Result.isFailure(taken)) {
    yield* Effect.logWarning("a pending route could not be recorded as work in hand: it waits", {
      connection_id: connectionId,
      error: taken.failure
    })
    return null
  }
  const manner = taken.success(route)
  if (manner !== "set aside") return yield* hand.within(route, manner, decide(decider, request))
  yield* hand.done(route)
  return { ...nothing, fate: ignored(route.id, setAside.code, [{ message: setAside.message }]) }
})

/** Requests with the same deduplication key, oldest first. A request without a key is a group of its own. */
export interface Group {
  readonly key: string | null
  readonly requests: ReadonlyArray<PendingRequest>
}

export const groupByKey = Effect.fnUntraced(function* (
  { deduplication }: Decider,
  requests: ReadonlyArray<PendingRequest>
): Effect.fn.Return<ReadonlyArray<Group>> {
  if (deduplication === null) return requests.map((request) => ({ key: null, requests: [request] }))
  const groups: Array<Group> = []
  const byKey = new Map<string, Array<PendingRequest>>()
  let since = performance.now()
  for (const request of requests) {
    // A replay is never a duplicate.
    if (!request.isReplay) yield* parseLarge(request)
    const key = request.isReplay ? null : deduplication.key(request.input)
    if (performance.now() - since > unaskedMs) {
      yield* yieldIfSpent(since)
      since = performance.now()
    }
    const known = key === null ? undefined : byKey.get(key)
    if (known !== undefined) {
      known.push(request)
      continue
    }
    const own = [request]
    if (key !== null) byKey.set(key, own)
    groups.push({ key, requests: own })
  }
  return groups
})

/**
 * Decides about the requests of one key in their order. Only a request that becomes an event opens a deduplication window. If its
 * transformation fails or a filter stops it, the next request of the key may become an event, because nothing was delivered yet.
 */
export const decideGroup = Effect.fnUntraced(function* (
  decider: Decider,
  { key, requests }: Group,
  stored: DedupeWindow | undefined
): Effect.fn.Return<ReadonlyArray<DecidedJob>, never, Sandbox | Database> {
  const decisions: Array<DecidedJob> = []
  let window = stored
  for (const request of requests) {
    const { counted, id: requestId, ingestedAt } = request
    if (window !== undefined && ingestedAt < window.expires_at) {
      const meta = [{ key: window.key, first_request_id: window.request_id }]
      const fate = ignored(derivedId(prefixes.event, requestId, decider.connectionId), "DEDUPLICATED", meta)
      decisions.push({ requestId, counted, fate, ...nothing })
      continue
    }
    const decided = yield* decideInHand(decider, request).pipe(
      // When one request fails unexpectedly, the others of its batch are not affected: it waits for the poller.
      Effect.catchDefect((cause) =>
        Effect.as(
          Effect.logError("a pending request could not be decided", { request_id: requestId }, Cause.die(cause)),
          null as Decided
        )
      )
    )
    // Later requests of the key wait too: whether they are duplicates depends on this one.
    if (decided === null) return decisions
    if (decided.fate.kind !== "event" || key === null) {
      decisions.push({ requestId, counted, ...decided })
      continue
    }
    window = { key, request_id: requestId, expires_at: ingestedAt + decider.windowMs }
    decisions.push({ requestId, counted, ...decided, opens: { key, expiresAt: window.expires_at } })
  }
  return decisions
})
