import { Cause, Clock, Effect, Result, Semaphore } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import { storedHeaders } from "@tidegate/model/Message"
import { takeTurn } from "@tidegate/model/LoopTurn"
import { compileDeduplication } from "@tidegate/rules/Deduplication"
import { compileRules, type SlowRules } from "@tidegate/rules/RuleSet"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import {
  type DedupeWindow,
  readDedupeWindows,
  readPendingWork,
  type RoutedTransformation,
  teamOfConnection
} from "@tidegate/storage/PendingRoutes"
import { type Fate, type Settled, settlePendingRoutes } from "@tidegate/storage/SettlePendingRoutes"
import { Secrets } from "@tidegate/storage/Secrets"
import { openEnv } from "@tidegate/storage/TransformationEnv"
import { pinTransformation } from "@tidegate/storage/Transformations"
import { type DeliveryItem, newItem, payloadOf } from "../Destination/DeliveryItem.ts"
import { horizonMs } from "../Destination/DeliveryQueue.ts"
import { actors } from "../Hints.ts"
import { shardOf } from "../Shards.ts"
import { settledTelemetry } from "./RouteTelemetry.ts"
import { parseLarge, type PendingRequest, pendingRequest, transform, type Transformation } from "./Transforming.ts"

/** Read at once: so many routes, and bodies of so many bytes. */
const batchSize = 200
const batchBytes = 2 * 1024 * 1024
/** Settled at once when a transformation runs, so that what is done does not wait long for what is not. */
const chunkSize = 50
/**
 * Transformations of one connection under way: what waits for the sandbox goes to it together. It has room for so many of each of a
 * team's connections, and shares itself among all.
 */
const concurrency = 25
/** Connections of one team that have a batch in memory. What comes on top waits in SQL, and no other team waits for it. */
const batchesPerTeam = 16
const mostTeamsKnown = 100_000
/** Work that does not ask for a turn of the loop (ms). */
const unaskedMs = 1

/** What is decided about a request; null: not now, the route stays pending and the sweep comes back to it. */
type Decided = Omit<Settled, "requestId"> | null

/** The slow rules of a connection, ready to decide. */
interface Decider {
  readonly connectionId: string
  readonly destinationId: string
  readonly slow: SlowRules
  readonly delay: number
  readonly transformation: Transformation | null
  readonly windowMs: number
  /** Told why the transformation's code is not run in a sealed realm, when it turns out not to suit it. */
  readonly pin: (reason: string) => void
}

const ignored = (requestId: string, connectionId: string, cause: string, meta: ReadonlyArray<unknown>): Fate => ({
  kind: "ignored",
  ignoredId: derivedId(prefixes.ignoredEvent, requestId, connectionId),
  cause,
  meta: JSON.stringify(meta)
})

/** Transformation, then the filters behind it. */
const decide = Effect.fnUntraced(function* (
  decider: Decider,
  request: PendingRequest
): Effect.fn.Return<Decided, never, Sandbox> {
  const { connectionId, delay, slow, transformation } = decider
  const requestId = request.row.request_id
  let { input } = request
  let outcome: Omit<Settled, "requestId" | "fate"> = { execution: null, transformed: null, opens: null }
  if (slow.transform !== null) {
    if (transformation === null) return null
    const made = yield* Effect.option(transform(transformation, request, decider))
    if (made._tag === "None") return null
    if (made.value.pinned !== null) decider.pin(made.value.pinned)
    if (made.value.kind === "failed") {
      const meta = [{ transformation_id: transformation.id, message: made.value.message }]
      const fate = ignored(requestId, connectionId, "TRANSFORMATION_FAILED", meta)
      return { ...outcome, execution: made.value.execution, fate }
    }
    input = made.value.input
    outcome = { ...outcome, execution: made.value.execution, transformed: made.value.data }
  }
  const since = performance.now()
  const missed = slow.filter === null ? [] : slow.filter.failingTargets(input)
  if (performance.now() - since > unaskedMs) yield* takeTurn(since)
  if (missed.length > 0) return { ...outcome, fate: ignored(requestId, connectionId, "FILTERED", missed) }
  const eventId = derivedId(prefixes.event, requestId, connectionId)
  return { ...outcome, fate: { kind: "event", eventId, dueAt: (yield* Clock.currentTimeMillis) + delay } }
})

/** Requests that agree in the fields of a deduplicate rule, oldest first; those without a key are alone. */
interface Group {
  readonly key: string | null
  readonly requests: ReadonlyArray<PendingRequest>
}

const groupByKey = Effect.fnUntraced(function* (
  slow: SlowRules,
  requests: ReadonlyArray<PendingRequest>
): Effect.fn.Return<ReadonlyArray<Group>> {
  if (slow.deduplicate === null) return requests.map((request) => ({ key: null, requests: [request] }))
  const deduplication = compileDeduplication(slow.deduplicate)
  const groups: Array<Group> = []
  const byKey = new Map<string, Array<PendingRequest>>()
  let since = performance.now()
  for (const request of requests) {
    // A replay is meant to happen again.
    const isReplay = request.row.retry_kind !== null
    if (!isReplay) yield* parseLarge(request)
    const key = isReplay ? null : deduplication.key(request.input)
    if (performance.now() - since > unaskedMs) {
      yield* takeTurn(since)
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
 * Decides about the requests of one key in their order. Only a request that becomes an event opens a window: if its
 * transformation fails or a filter holds it back, the next one of its key has its turn, because nothing of it was delivered.
 */
const decideGroup = Effect.fnUntraced(function* (
  decider: Decider,
  { key, requests }: Group,
  stored: DedupeWindow | undefined
): Effect.fn.Return<ReadonlyArray<Settled>, never, Sandbox> {
  const settled: Array<Settled> = []
  let window = stored
  for (const request of requests) {
    const requestId = request.row.request_id
    const at = request.row.ingested_at.getTime()
    if (window !== undefined && at < window.expires_at) {
      const meta = [{ key: window.key, first_request_id: window.request_id }]
      const fate = ignored(requestId, decider.connectionId, "DEDUPLICATED", meta)
      settled.push({ requestId, fate, execution: null, transformed: null, opens: null })
      continue
    }
    const decided = yield* decide(decider, request).pipe(
      // What breaks down over one request costs the others of its batch nothing: it waits for the next sweep.
      Effect.catchDefect((cause) =>
        Effect.as(
          Effect.logError("a pending request could not be decided", { request_id: requestId }, Cause.die(cause)),
          null as Decided
        )
      )
    )
    // Those behind it wait with it: whether they are duplicates depends on it.
    if (decided === null) return settled
    if (decided.fate.kind !== "event" || key === null) {
      settled.push({ requestId, ...decided })
      continue
    }
    window = { key, request_id: requestId, expires_at: at + decider.windowMs }
    settled.push({ requestId, ...decided, opens: { key, expiresAt: window.expires_at } })
  }
  return settled
})

/** Groups in bundles of about so many requests. */
const bundles = (groups: ReadonlyArray<Group>, size: number): ReadonlyArray<ReadonlyArray<Group>> => {
  const found: Array<Array<Group>> = []
  let room = 0
  for (const group of groups) {
    if (room <= 0) {
      found.push([])
      room = size
    }
    found.at(-1)!.push(group)
    room -= group.requests.length
  }
  return found
}

/** The event as its destination takes it, so that it need not read it; null when there is none. */
const deliveryItem = (
  { fate, transformed }: Settled,
  { received, row }: PendingRequest,
  connectionId: string,
  createdAt: number
): DeliveryItem | null => {
  if (fate.kind !== "event") return null
  const { original_ip: originalIp, presented, verified } = row
  const head = transformed === null ? received : { ...transformed, headers: storedHeaders(transformed) }
  const body = transformed?.body ?? row.body
  const payload = payloadOf(head, { id: row.request_id, body, presented, verified, originalIp })
  const event = { id: fate.eventId, connectionId, dueAt: fate.dueAt, orderingKey: row.ordering_key }
  return newItem(event, { teamId: row.team_id, sourceId: row.source_id }, createdAt, payload)
}

const dropped = { fate: { kind: "dropped" }, execution: null, transformed: null, opens: null } as const

type Requirements = Database | Sharding.Sharding | Sandbox | Secrets

/** Decides about one batch and settles it. Answers whether there may be more to do now. */
const workOffBatch = Effect.fnUntraced(function* (
  connectionId: string
): Effect.fn.Return<boolean, SqlError.SqlError, Requirements> {
  const sharding = yield* Sharding.Sharding
  const { deliver } = yield* actors
  const work = yield* readPendingWork(connectionId, batchSize, batchBytes)
  if (work === null || work.waiting.length === 0) return false
  const { connection, waiting } = work
  const destinationId = connection.destination_id
  const shard = shardOf(sharding, destinationId)
  const inLine = waiting.some(({ place }) => place !== null)
  const requests = new Map(waiting.map((row) => [row.request_id, pendingRequest(row)]))
  const settle = Effect.fnUntraced(function* (settled: ReadonlyArray<Settled>) {
    if (settled.length === 0) return
    const now = yield* Clock.currentTimeMillis
    const made = yield* settlePendingRoutes({ connectionId, destinationId, shard, now, settled, inLine })
    yield* settledTelemetry({ connectionId, destinationId, requests, settled, made, now })
    const items = settled.flatMap((one) => {
      const item = deliveryItem(one, requests.get(one.requestId)!, connectionId, now)
      return item !== null && made.has(item.eventId) && item.dueAt <= now + horizonMs ? [item] : []
    })
    if (items.length > 0) yield* deliver(destinationId, items)
  })

  if (!connection.routes) {
    yield* settle(waiting.map(({ request_id }) => ({ requestId: request_id, ...dropped })))
    return true
  }
  const rules = Result.getOrNull(compileRules(connection.rules))
  if (rules === null) {
    // Closed: rules that cannot be read let nothing through, and nothing is lost.
    yield* Effect.logError("a connection's rules cannot be read", { connection_id: connectionId })
    return false
  }
  // Rules that were removed meanwhile leave nothing to wait for.
  const slow = rules.slow ?? { deduplicate: null, transform: null, filter: rules.filter }
  const transformation = slow.transform === null ? null : yield* readyToRun(work.transformation)
  const windowMs = slow.deduplicate?.window ?? 0
  let pinned: string | null = null
  const pin = (reason: string): void => {
    pinned = reason
  }
  const decider: Decider = { connectionId, destinationId, slow, delay: rules.delay, transformation, windowMs, pin }
  const groups = yield* groupByKey(slow, [...requests.values()])
  const keys = groups.flatMap(({ key }) => (key === null ? [] : [key]))
  const windows = new Map((yield* readDedupeWindows(connectionId, keys)).map((window) => [window.key, window]))
  let settled = 0
  let decided: ReadonlyArray<Settled> = []
  // In line, a group may take what comes late along with what comes early: then all are settled together.
  const isWhole = slow.transform === null || (inLine && slow.deduplicate !== null)
  for (const bundle of [...bundles(groups, isWhole ? batchSize : chunkSize), []]) {
    const deciding = Effect.forEach(
      bundle,
      (group) => decideGroup(decider, group, group.key === null ? undefined : windows.get(group.key)),
      { concurrency }
    )
    // The bundle before it is settled meanwhile: no key is in two.
    const [, next] = yield* Effect.all([settle(decided), deciding], { concurrency: 2 })
    settled += decided.length
    decided = next.flat()
  }
  // Lost in a crash, it is told again by the next call of that code.
  if (transformation !== null && pinned !== null)
    yield* pinTransformation(transformation.id, transformation.codeHash, pinned)
  // What came since is told by its own wake.
  const bytes = waiting.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
  return settled === waiting.length && (waiting.length === batchSize || bytes >= batchBytes)
})

/** A turn for each of a few batches of a team at a time. */
const makeTurns = (perTeam: number) => {
  const teams = new Map<string, { readonly semaphore: Semaphore.Semaphore; users: number }>()
  return <A, E, R>(teamId: string, batch: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const team = teams.get(teamId) ?? { semaphore: Semaphore.makeUnsafe(perTeam), users: 0 }
      teams.set(teamId, team)
      team.users++
      return Effect.ensuring(
        Semaphore.withPermit(team.semaphore)(batch),
        Effect.sync(() => {
          if (--team.users === 0) teams.delete(teamId)
        })
      )
    })
}

/**
 * What works off a connection's pending routes: each becomes an event or an ignored event, in the same transaction in which
 * it leaves the list. Interrupted anywhere, it begins again where SQL says it was; nothing is kept in memory between two
 * batches, so the windows of deduplication survive whatever the process does not.
 */
export const makeRouteWorker = (): ((connectionId: string) => Effect.Effect<void, never, Requirements>) => {
  const inTurn = makeTurns(batchesPerTeam)
  /** Whose each connection is: that never changes. */
  const teams = new Map<string, string>()
  return Effect.fnUntraced(
    function* (connectionId: string): Effect.fn.Return<void, SqlError.SqlError, Requirements> {
      const team = teams.get(connectionId) ?? (yield* teamOfConnection(connectionId))
      if (team === null) return
      if (teams.size >= mostTeamsKnown) teams.clear()
      teams.set(connectionId, team)
      while (yield* inTurn(team, workOffBatch(connectionId))) {
        // The next batch has a turn of its own.
      }
    },
    (effect, connectionId) =>
      Effect.catch(effect, (error) =>
        Effect.logWarning("pending routes could not be worked off", { connection_id: connectionId, error })
      )
  )
}

/** Null when it is not there, or its variables cannot be read: its requests wait, because they may come back. */
const readyToRun = Effect.fnUntraced(function* (
  stored: RoutedTransformation | null
): Effect.fn.Return<Transformation | null, never, Secrets> {
  if (stored === null) return null
  const { code, code_hash, id, isolation } = stored
  return yield* openEnv(yield* Secrets, stored).pipe(
    Effect.map((env): Transformation => ({ id, code, codeHash: code_hash, isolation, env })),
    Effect.catch((error) =>
      Effect.as(Effect.logError("a transformation's variables cannot be read", { transformation_id: id, error }), null)
    )
  )
})
