import { Effect, Latch } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import type { RoutingOutcome } from "@tidegate/storage/Journal"
import { readPendingWork, teamOfConnection } from "@tidegate/storage/delivery/RoutingJobs"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { pinTransformation } from "@tidegate/storage/control/Transformations"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { dropped } from "./Decide.ts"
import { makeBatchDecider } from "./DecideBatch.ts"
import { Inbox } from "./Inbox.ts"
import { KeptSettings, makeSettingsCache } from "./KeptSettings.ts"
import { type PendingRequest, storedRequest } from "./PendingRequest.ts"
import type { Batch } from "../dispatch/Batch.ts"
import { decidesAll, type RouteSettings, routeSettings } from "./RouteSettings.ts"
import { type Decisions, makeRoutingCommits } from "./RoutingCommits.ts"

/** Routing jobs of one batch; and, when they are read from SQL, bytes of their bodies. */
const batchSize = 200
const batchBytes = 2 * 1024 * 1024
/** Bytes that all connections of a process may hold of requests that were handed to them. Further ones wait in SQL. */
const maxHeld = 48 * 1024 * 1024
/**
 * Connections of one team that may decide about a batch at the same time. Further ones wait, and no other team waits for them.
 */
const batchesPerTeam = 6
const maxTeamsKnown = 100_000

type Requirements = Database | Sandbox | Secrets

/** How a connection's actor works off its routing jobs. */
export interface RouteWork<R = Requirements> {
  /** Takes requests that have just been committed. */
  readonly offer: (batch: Batch<PendingRequest>) => void
  /** There may be more routing jobs than the connection was given. */
  readonly wake: () => void
  /** Works off all routing jobs. Only one such effect may run at a time. After a failure, the next one reads them again. */
  readonly work: Effect.Effect<void, SqlError.SqlError, R>
  /** Another process owns the connection from here on: decisions that are not committed yet are dropped. */
  readonly close: () => void
}

/** What the connections of a process share. */
const makeShared = Effect.gen(function* () {
  return {
    sharding: yield* Sharding.Sharding,
    lease: yield* Lease,
    commit: yield* makeRoutingCommits,
    decideBatch: yield* makeBatchDecider,
    held: new SharedBytes(maxHeld),
    batches: permitsByKey({ perKey: batchesPerTeam }),
    /** Whose each connection is: that never changes. */
    teams: new Map<string, string>(),
    settings: makeSettingsCache()
  }
})

type Shared = Effect.Success<typeof makeShared>

/**
 * Works off routing jobs: each becomes an event or an ignored event, in the same transaction that removes the job. Ingress hands
 * requests over after the commit that stored their routing jobs. The others are read from SQL: those that were not handed over,
 * or that exceeded the limit of memory. After an interruption the work begins again from SQL: memory has only a copy.
 *
 * **Which settings decide.** Settings that were read together with the jobs hold for them. When older settings decide, the
 * decision names their version. If that version is outdated, nothing is committed, and jobs and settings are read again.
 */
export const makeRouteWorker = Effect.map(
  makeShared,
  (shared) =>
    (connectionId: string): RouteWork =>
      open(shared, connectionId)
)

/** Null: there is no such connection. */
const teamOf = Effect.fnUntraced(function* ({ teams }: Shared, connectionId: string, inbox: Inbox) {
  const known = inbox.teamId ?? teams.get(connectionId) ?? (yield* teamOfConnection(connectionId))
  if (known === null) return null
  if (teams.size >= maxTeamsKnown) teams.clear()
  teams.set(connectionId, known)
  return known
})

const open = (shared: Shared, connectionId: string): RouteWork => {
  const { batches, commit, decideBatch, lease, sharding, teams } = shared
  const shard = shardOf(sharding, connectionId)
  const inbox = new Inbox(shared.held.share())
  const settings = new KeptSettings(connectionId, shared.settings)
  /** Opened when a step that waits may go on: commits have ended, or there are new requests. */
  const changed = Latch.makeUnsafe()
  const state = {
    /** There may be routing jobs in SQL that are not in the inbox. */
    more: false,
    /** Why the code of the transformation is to be pinned: not to run in a reused isolate any more. */
    pinned: null as string | null,
    /** Commits that are under way. */
    outstanding: 0,
    /** Why the work stops before it is done: looking again at once would read, decide and be refused again. */
    stop: null as "withdrawn" | SqlError.SqlError | null,
    isClosed: false
  }
  const pin = (reason: string): void => {
    state.pinned = reason
  }
  const isOwned = (): boolean => !state.isClosed && lease.isHeld(shard)

  const committed = (requests: ReadonlyArray<PendingRequest>, outcome: RoutingOutcome): void => {
    state.outstanding--
    requests.forEach(inbox.done)
    if (outcome.kind !== "committed") settings.forget()
    if (outcome.kind === "stale") state.more = true
    else if (outcome.kind === "withdrawn") state.stop ??= outcome.kind
    else if (outcome.kind === "failed") state.stop = outcome.error
    // Last, because a waiting fiber continues at once.
    if (state.outstanding === 0) changed.openUnsafe()
  }

  /** Commits decisions that were made by these settings; null: by settings that were read together with the requests. */
  const committing =
    (by: RouteSettings | null, to: Decisions["to"]) =>
    (requests: ReadonlyArray<PendingRequest>, decided: ReadonlyArray<DecidedJob>): void => {
      if (decided.length === 0) return requests.forEach(inbox.done)
      state.outstanding++
      const done = (outcome: RoutingOutcome): void => committed(requests, outcome)
      commit({ connectionId, to, by, requests, decided, isOwned, done })
    }

  /** Reads a batch and works it off. Returns whether there may be more to do now. */
  const workOffStored = Effect.gen(function* () {
    settings.forget()
    const read = yield* readPendingWork(connectionId, batchSize, batchBytes)
    if (read === null) return false
    const requests = read.waiting.map(storedRequest)
    for (const { id } of requests) inbox.drop(id)
    const { destination_id, routes } = read.connection
    if (!routes) {
      committing(null, { destinationId: destination_id, isTunnel: false })(requests, requests.map(dropped))
      return requests.length > 0
    }
    const current = yield* routeSettings(connectionId, read, pin)
    if (current === null) return false
    // Also when nothing waits: requests that are handed over later are decided by these settings.
    if (decidesAll(current)) {
      settings.set(current, yield* inSlices(weighing([read.connection.rules, read.transformation?.code])))
    }
    const decided = yield* decideBatch(current.decider, requests, committing(null, current.decider))
    // Jobs that were stored meanwhile have a wake-up notification of their own.
    const bytes = requests.reduce((sum, { body }) => sum + body.length, 0)
    return decided === requests.length && (requests.length === batchSize || bytes >= batchBytes)
  })

  const workOffInbox = (by: RouteSettings) => {
    const requests = inbox.take(batchSize)
    // They arrive in the order of their commits.
    if (by.decider.deduplication !== null) requests.sort((a, b) => (a.id < b.id ? -1 : 1))
    return decideBatch(by.decider, requests, committing(by, by.decider))
  }

  /** If a crash loses this, the next call of the code reports it again. */
  const pinCode = Effect.suspend(() => {
    const { pinned } = state
    state.pinned = null
    const transformation = pinned === null ? null : (settings.current?.decider.transformation ?? null)
    if (pinned === null || transformation === null) return Effect.void
    settings.forget()
    return pinTransformation(transformation.id, transformation.codeHash, pinned)
  })

  /** Does the next piece of work; returns whether there was any. */
  const step = Effect.fnUntraced(function* (teamId: string) {
    changed.closeUnsafe()
    const by = settings.current
    const isCommitting = state.outstanding > 0
    if (state.more || (by === null && inbox.size > 0)) {
      // Jobs whose commit is under way would be read again.
      if (isCommitting) yield* changed.await
      else {
        state.more = false
        if (yield* batches.within(teamId)(workOffStored)) state.more = true
        else if (settings.current === null) inbox.empty()
      }
    } else if (by !== null && inbox.size > 0 && !(isCommitting && by.decider.deduplication !== null)) {
      // With a deduplicate rule the windows that were opened before have to be stored.
      yield* batches.within(teamId)(Effect.suspend(() => workOffInbox(by)))
    } else if (isCommitting) yield* changed.await
    else return false
    yield* pinCode
    return true
  })

  const failure = Effect.suspend((): Effect.Effect<void, SqlError.SqlError> =>
    state.stop === null || state.stop === "withdrawn" ? Effect.void : Effect.fail(state.stop)
  )

  const work = Effect.gen(function* () {
    state.stop = null
    const teamId = yield* teamOf(shared, connectionId, inbox)
    if (teamId !== null) while (state.stop === null && !state.isClosed && (yield* step(teamId))) continue
    yield* failure
  }).pipe(
    Effect.tapError((error) => Effect.sync(() => (state.stop = error))),
    Effect.ensuring(
      Effect.sync(() => {
        // They are in SQL, and so are those of an owner that has lost the connection.
        if (state.stop !== null) inbox.empty()
        if (state.stop !== null && state.stop !== "withdrawn") state.more = true
        settings.putAway(state.isClosed ? null : (teams.get(connectionId) ?? null))
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
      settings.forget()
      inbox.close()
      changed.openUnsafe()
    }
  }
}
