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
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import { Journal, type RoutingOutcome } from "@tidegate/storage/Journal"
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

/** Routing jobs of one batch; and, when they are read from SQL, bytes of their bodies. */
const batchSize = 200
const batchBytes = 2 * 1024 * 1024
/** Bytes that all connections of a process may hold of requests that were handed to them. Further ones wait in SQL. */
const maxHeld = 48 * 1024 * 1024
/**
 * Transformations of one connection under way: as many as go to the sandbox together. The sandbox takes this many from each
 * connection, and shares its capacity fairly among teams.
 */
const concurrency = 64
/**
 * Connections of one team that may decide about a batch at the same time. Further ones wait, and no other team waits for them.
 */
const batchesPerTeam = 6
const maxTeamsKnown = 100_000
const maxKept = 20_000

/** Settings with their weight in bytes. */
interface KeptSettings {
  readonly settings: RouteSettings
  readonly bytes: number
}

type Requirements = Database | Sandbox | Secrets

/** How a connection's actor works off its routing jobs. */
export interface RouteWork<R = Requirements> {
  /** Takes requests that have just been committed. */
  readonly offer: (batch: Batch<PendingRequest>) => void
  /** There may be more routing jobs than the connection was given. */
  readonly wake: () => void
  /** Works off all routing jobs. Only one such effect may run at a time. */
  readonly work: Effect.Effect<void, never, R>
  /** Another process owns the connection from here on: decisions that are not committed yet are dropped. */
  readonly close: () => void
}

/** The approximate weight of a settlement in the journal, in bytes. */
const bytesOf = (settled: ReadonlyArray<DecidedJob>): number =>
  settled.reduce(
    (sum, { execution, transformed }) =>
      sum + 512 + (transformed?.body?.length ?? 0) + (transformed?.headers.length ?? 0) + (execution?.logs.length ?? 0),
    0
  )

/**
 * Works off routing jobs: each becomes an event or an ignored event, in the same transaction that removes the job. Ingress hands
 * requests over after the commit that stored their routing jobs. The others are read from SQL: those that were not handed over,
 * or that exceeded the limit of memory. After an interruption the work begins again from SQL: memory has only a copy.
 *
 * **Which settings decide.** Settings that were read together with the jobs hold for them. When older settings decide, the
 * settlement names their version. If that version is outdated, nothing is committed, and jobs and settings are read again.
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
  /** The settings of connections without work. A connection at work holds its own. */
  const kept = new WeighedCache<string, KeptSettings>(maxKept)

  return (connectionId: string): RouteWork => {
    const shard = shardOf(sharding, connectionId)
    const inbox = new Inbox(held.share())
    /** Tells `work` to look again. */
    const changed = Latch.makeUnsafe()
    const state = {
      /** There may be routing jobs in SQL that are not in the inbox. */
      more: false,
      settings: null as KeptSettings | null,
      /** Why the code of the transformation is to be pinned: not to run in a reused isolate any more. */
      pinned: null as string | null,
      /** Settlements that the journal has not committed or refused yet. */
      outstanding: 0,
      failed: false,
      isClosed: false
    }
    /** From here on the settings are read again before they decide. */
    const forgetSettings = (): void => {
      state.settings = null
      kept.delete(connectionId)
    }
    const pin = (reason: string): void => {
      state.pinned = reason
    }
    const isOwned = (): boolean => !state.isClosed && lease.isHeld(shard)

    /** Reports committed results, and hands events to their destination so that it need not read them from SQL. */
    const announce = (
      destinationId: string,
      requests: ReadonlyArray<PendingRequest>,
      settled: ReadonlyArray<DecidedJob>,
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

    /**
     * Hands the decisions about the first of these requests to the journal. `by` is null when the settings were read with the
     * requests.
     */
    const settle = (
      by: RouteSettings | null,
      { destinationId, isTunnel }: Pick<Decider, "destinationId" | "isTunnel">,
      requests: ReadonlyArray<PendingRequest>,
      settled: ReadonlyArray<DecidedJob>
    ): void => {
      if (settled.length === 0) return requests.forEach(inbox.done)
      const now = clock.currentTimeMillisUnsafe()
      state.outstanding++
      const done = (outcome: RoutingOutcome): void => {
        state.outstanding--
        requests.forEach(inbox.done)
        if (outcome.kind === "committed") announce(destinationId, requests, settled, outcome.made, now)
        else {
          forgetSettings()
          if (outcome.kind === "stale") state.more = true
          // Looking again at once would read, decide and be refused again.
          else state.failed = true
          if (outcome.kind === "failed") {
            const { error } = outcome
            run(Effect.logWarning("pending routes could not be settled", { connection_id: connectionId, error }))
          }
        }
        // Last, because a waiting fiber continues at once.
        if (state.outstanding === 0) changed.openUnsafe()
      }
      journal.commitRouting({
        connectionId,
        destinationId,
        isTunnel,
        shard: shardOf(sharding, destinationId),
        now,
        basis: by?.basis ?? null,
        inOrder: requests.some((request) => request.inOrder),
        decided: settled,
        bytes: bytesOf(settled),
        isOwned,
        done
      })
    }

    /** Decides about a batch and hands each decision to the journal when it is made. Returns how many requests were decided. */
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
        // All are committed together: otherwise a later event of an ordering key could be stored before an earlier one.
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

    /** Reads a batch and works it off. Returns whether there may be more to do now. */
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
      // Also when nothing waits: requests that are handed over later are decided by these settings.
      if (decidesAll(settings)) {
        const bytes = yield* inSlices(weighing([read.connection.rules, read.transformation?.code]))
        state.settings = { settings, bytes }
      }
      const decided = yield* decideBatch(settings, requests, true)
      // Jobs that were stored meanwhile have a wake-up notification of their own.
      const bytes = requests.reduce((sum, { body }) => sum + body.length, 0)
      return decided === requests.length && (requests.length === batchSize || bytes >= batchBytes)
    })

    const workOffInbox = (settings: RouteSettings) => {
      const requests = inbox.take(batchSize)
      // They arrive in the order of their commits.
      if (settings.decider.deduplication !== null) requests.sort((a, b) => (a.id < b.id ? -1 : 1))
      return decideBatch(settings, requests, false)
    }

    /** If a crash loses this, the next call of the code reports it again. */
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

    /** Does the next piece of work; returns whether there was any. */
    const step = Effect.fnUntraced(function* (teamId: string) {
      changed.closeUnsafe()
      state.settings ??= kept.get(connectionId) ?? null
      const settings = state.settings?.settings ?? null
      const isSettling = state.outstanding > 0
      if (state.more || (settings === null && inbox.size > 0)) {
        // Jobs whose settlement is under way would be read again.
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
          // The poller brings them back.
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
