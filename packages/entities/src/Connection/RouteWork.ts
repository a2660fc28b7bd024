import { Clock, Effect, Latch } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { Settled } from "@tidegate/storage/journal/RoutingStatement"
import { Journal, type SettlementOutcome } from "@tidegate/storage/Journal"
import { makeWindowReader, readPendingWork, teamOfConnection } from "@tidegate/storage/delivery/RoutingJobs"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { pinTransformation } from "@tidegate/storage/control/Transformations"
import { newItem, payloadOf } from "../Destination/queue/DeliveryItem.ts"
import { horizonMs } from "../Destination/queue/DeliveryQueue.ts"
import { Dispatcher } from "../dispatch/Dispatcher.ts"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { type Decider, decideGroup, dropped, type Group, groupByKey } from "./Decide.ts"
import { Inbox } from "./Inbox.ts"
import { type PendingRequest, storedRequest } from "./PendingRequest.ts"
import type { Batch } from "../dispatch/Batch.ts"
import { decidesAll, type RouteSettings, routeSettings } from "./RouteSettings.ts"
import { routeTelemetry } from "./RouteTelemetry.ts"

/** Worked off at once: so many routes, and when they are read, bodies of so many bytes. */
const batchSize = 200
const batchBytes = 2 * 1024 * 1024
/** What all connections of a process may hold of requests that were handed to them; what comes on top waits in SQL. */
const maxHeld = 48 * 1024 * 1024
/**
 * Transformations of one connection under way: as many as go to the sandbox together. It has room for so many of each of a
 * team's connections, and shares itself among all.
 */
const concurrency = 64
/** Connections of one team that decide about a batch. What comes on top waits, and no other team waits for it. */
const batchesPerTeam = 6
const maxTeamsKnown = 100_000
const maxKept = 20_000

/** Settings with what they weigh, in bytes. */
interface KeptSettings {
  readonly settings: RouteSettings
  readonly bytes: number
}

type Requirements = Database | Sandbox | Secrets

/** What a connection's actor does with its pending routes. */
export interface RouteWork<R = Requirements> {
  /** Takes requests that have just been committed. */
  readonly offer: (batch: Batch<PendingRequest>) => void
  /** There may be more than it was given. */
  readonly wake: () => void
  /** Works off all there is; not to be run twice at once. */
  readonly work: Effect.Effect<void, never, R>
  /** The connection is somebody else's from here on: nothing that was decided is settled any more. */
  readonly close: () => void
}

/** About what a settlement weighs in the journal, in bytes. */
const bytesOf = (settled: ReadonlyArray<Settled>): number =>
  settled.reduce(
    (sum, { execution, transformed }) =>
      sum + 512 + (transformed?.body?.length ?? 0) + (transformed?.headers.length ?? 0) + (execution?.logs.length ?? 0),
    0
  )

/**
 * What works off pending routes: each becomes an event or an ignored event, in the same transaction in which it leaves the list.
 * Requests come from the doors, with the commit that made them pending, or are read from SQL: what a connection was not handed, or had
 * no room for. Interrupted anywhere, it begins again where SQL says it was: what is in memory is a copy.
 *
 * **By what they are decided.** Settings that were read with the routes hold for them. Those that were read before are the basis that
 * the settlement names: when it is not what holds any more, nothing is settled, and routes and settings are read.
 */
export const makeRouteWorker = Effect.gen(function* () {
  const sharding = yield* Sharding.Sharding
  const journal = yield* Journal
  const dispatcher = yield* Dispatcher
  const lease = yield* Lease
  const clock = yield* Clock.Clock
  const tell = yield* routeTelemetry
  const windowsOf = yield* makeWindowReader
  const run = Effect.runForkWith(yield* Effect.context())
  const held = new SharedBytes(maxHeld)
  const batches = permitsByKey({ perKey: batchesPerTeam })
  /** Whose each connection is: that never changes. */
  const teams = new Map<string, string>()
  /** What connections without work are decided by; one at work holds its own. */
  const kept = new WeighedCache<string, KeptSettings>(maxKept)

  return (connectionId: string): RouteWork => {
    const shard = shardOf(sharding, connectionId)
    const inbox = new Inbox(held.share())
    /** Tells `work` to look again. */
    const changed = Latch.makeUnsafe()
    const state = {
      /** There may be routes in SQL that are not in the inbox. */
      more: false,
      settings: null as KeptSettings | null,
      /** Why the transformation's code is to be pinned. */
      pinned: null as string | null,
      /** Settlements that the journal has not answered yet. */
      outstanding: 0,
      failed: false,
      isClosed: false
    }
    /** From here on its routes are decided by what is read anew. */
    const forgetSettings = (): void => {
      state.settings = null
      kept.delete(connectionId)
    }
    const pin = (reason: string): void => {
      state.pinned = reason
    }
    const isOwned = (): boolean => !state.isClosed && lease.isHeld(shard)

    /** What is durable is told, and events are handed to their destination, so that it need not read them. */
    const announce = (
      destinationId: string,
      requests: ReadonlyArray<PendingRequest>,
      settled: ReadonlyArray<Settled>,
      made: ReadonlySet<string>,
      now: number
    ): void => {
      for (const [index, one] of settled.entries()) {
        const request = requests[index]!
        const { fate, transformed } = one
        tell(one, request, { connectionId, destinationId }, made, now)
        if (fate.kind !== "event" || fate.dueAt > now + horizonMs || !made.has(fate.eventId)) continue
        const head = transformed === null ? request.received : { ...transformed, headers: transformed.values }
        const payload = payloadOf(
          head,
          transformed?.body ? { ...request, body: transformed.body } : request,
          transformed?.id ?? null
        )
        const event = { id: fate.eventId, connectionId, dueAt: fate.dueAt, orderingKey: request.orderingKey }
        dispatcher.deliver(destinationId, newItem(event, request, now, payload))
      }
    }

    /** Hands to the journal what was decided about the first of these requests. `by`: null: read with them. */
    const settle = (
      by: RouteSettings | null,
      { destinationId, isTunnel }: Pick<Decider, "destinationId" | "isTunnel">,
      requests: ReadonlyArray<PendingRequest>,
      settled: ReadonlyArray<Settled>
    ): void => {
      if (settled.length === 0) return requests.forEach(inbox.done)
      const now = clock.currentTimeMillisUnsafe()
      state.outstanding++
      const done = (outcome: SettlementOutcome): void => {
        state.outstanding--
        requests.forEach(inbox.done)
        if (outcome.kind === "settled") announce(destinationId, requests, settled, outcome.made, now)
        else {
          forgetSettings()
          if (outcome.kind === "stale") state.more = true
          // It would be read, decided and refused again.
          else state.failed = true
          if (outcome.kind === "failed") {
            const { error } = outcome
            run(Effect.logWarning("pending routes could not be settled", { connection_id: connectionId, error }))
          }
        }
        // Last: whoever waits goes on at once.
        if (state.outstanding === 0) changed.openUnsafe()
      }
      journal.settle({
        connectionId,
        destinationId,
        isTunnel,
        shard: shardOf(sharding, destinationId),
        now,
        basis: by?.basis ?? null,
        inOrder: requests.some((request) => request.inOrder),
        settled,
        bytes: bytesOf(settled),
        isOwned,
        done
      })
    }

    /** Decides about a batch and hands it to the journal as it is decided. Answers how many of it were decided about. */
    const decideBatch = Effect.fnUntraced(function* (
      settings: RouteSettings,
      requests: ReadonlyArray<PendingRequest>,
      areRead: boolean
    ): Effect.fn.Return<number, SqlError.SqlError, Database | Sandbox> {
      const { decider } = settings
      const groups = yield* groupByKey(decider, requests)
      const keys = groups.flatMap(({ key }) => (key === null ? [] : [key]))
      const windows = new Map((yield* windowsOf({ connectionId, keys })).map((window) => [window.key, window]))
      const decided = (group: Group) =>
        decideGroup(decider, group, group.key === null ? undefined : windows.get(group.key))
      let count = 0
      if (requests.some((request) => request.inOrder)) {
        // Settled apart, a later one of a line would be there before an earlier one.
        const all = yield* Effect.forEach(groups, decided, { concurrency })
        const made = new Map(all.flat().map((one) => [one.requestId, one]))
        const those = requests.filter(({ id }) => made.has(id))
        const settled = those.map(({ id }) => made.get(id)!)
        settle(areRead ? null : settings, decider, those, settled)
        return settled.length
      }
      yield* Effect.forEach(
        groups,
        (group) =>
          Effect.map(decided(group), (settled) => {
            count += settled.length
            settle(areRead ? null : settings, decider, group.requests, settled)
          }),
        { concurrency, discard: true }
      )
      return count
    })

    /** Reads a batch and works it off. Answers whether there may be more to do now. */
    const workOffStored = Effect.gen(function* () {
      forgetSettings()
      const read = yield* readPendingWork(connectionId, batchSize, batchBytes)
      if (read === null) return false
      const requests = read.waiting.map(storedRequest)
      for (const { id } of requests) inbox.drop(id)
      const { destination_id, routes } = read.connection
      if (!routes) {
        settle(null, { destinationId: destination_id, isTunnel: false }, requests, requests.map(dropped))
        return requests.length > 0
      }
      const settings = yield* routeSettings(connectionId, read, pin)
      if (settings === null) return false
      // Also when nothing waits: what is handed over meanwhile is decided by them.
      if (decidesAll(settings)) {
        const bytes = yield* inSlices(weighing([read.connection.rules, read.transformation?.code]))
        state.settings = { settings, bytes }
      }
      const decided = yield* decideBatch(settings, requests, true)
      // What came since is told by its own wake.
      const bytes = requests.reduce((sum, { body }) => sum + body.length, 0)
      return decided === requests.length && (requests.length === batchSize || bytes >= batchBytes)
    })

    const workOffInbox = (settings: RouteSettings) => {
      const requests = inbox.take(batchSize)
      // They come in the order of their commits.
      if (settings.decider.deduplication !== null) requests.sort((a, b) => (a.id < b.id ? -1 : 1))
      return decideBatch(settings, requests, false)
    }

    /** Lost in a crash, it is told again by the next call of that code. */
    const pinCode = Effect.suspend(() => {
      const { pinned, settings: by } = state
      const transformation = by?.settings.decider.transformation ?? null
      state.pinned = null
      if (pinned === null || transformation === null) return Effect.void
      forgetSettings()
      return pinTransformation(transformation.id, transformation.codeHash, pinned)
    })

    const team = Effect.gen(function* () {
      const known = inbox.teamId ?? teams.get(connectionId) ?? (yield* teamOfConnection(connectionId))
      if (known === null) return null
      if (teams.size >= maxTeamsKnown) teams.clear()
      teams.set(connectionId, known)
      return known
    })

    /** Does what there is to do next; answers whether there was anything. */
    const step = Effect.fnUntraced(function* (teamId: string) {
      changed.closeUnsafe()
      state.settings ??= kept.get(connectionId) ?? null
      const settings = state.settings?.settings ?? null
      const isSettling = state.outstanding > 0
      if (state.more || (settings === null && inbox.size > 0)) {
        // What is on its way to be settled would be read again.
        if (isSettling) yield* changed.await
        else {
          state.more = false
          if (yield* batches.within(teamId)(workOffStored)) state.more = true
          else if (state.settings === null) inbox.empty()
        }
      } else if (settings !== null && inbox.size > 0 && !(isSettling && settings.decider.deduplication !== null)) {
        // With a deduplicate rule the windows that were opened before have to be stored.
        yield* batches.within(teamId)(Effect.suspend(() => workOffInbox(settings)))
      } else if (isSettling) yield* changed.await
      else return false
      yield* pinCode
      return true
    })

    const work = Effect.gen(function* () {
      state.failed = false
      const teamId = yield* team
      if (teamId !== null) while (!state.failed && !state.isClosed && (yield* step(teamId))) continue
    }).pipe(
      Effect.catch((error) => {
        state.failed = true
        return Effect.logWarning("pending routes could not be worked off", { connection_id: connectionId, error })
      }),
      Effect.ensuring(
        Effect.sync(() => {
          // The sweep comes back to them.
          if (state.failed) inbox.empty()
          const { settings } = state
          const owner = teams.get(connectionId)
          const isGood = settings !== null && owner !== undefined && !state.isClosed
          if (isGood && kept.get(connectionId) !== settings) {
            kept.set(connectionId, settings, { owner, bytes: settings.bytes })
          }
          state.settings = null
        })
      )
    )

    return {
      offer: ({ items, more }) => {
        for (const request of items) if (!inbox.add(request)) state.more = true
        if (more) state.more = true
        changed.openUnsafe()
      },
      wake: () => {
        state.more = true
        changed.openUnsafe()
      },
      work,
      close: () => {
        state.isClosed = true
        forgetSettings()
        inbox.close()
        changed.openUnsafe()
      }
    }
  }
})
