import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Database } from "@tidegate/storage/Database"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import { makeWindowReader } from "@tidegate/storage/delivery/RoutingJobs"
import { type Decider, decideGroup, type Group, groupByKey } from "./Decide.ts"
import type { PendingRequest } from "./PendingRequest.ts"

/**
 * Transformations of one connection under way: as many as go to the sandbox together. The sandbox takes this many from each
 * connection, and shares its capacity fairly among teams.
 */
const concurrency = 64

/** Takes decisions about the first of these requests as soon as they are made. */
type Commit = (requests: ReadonlyArray<PendingRequest>, decided: ReadonlyArray<DecidedJob>) => void

/** Decides about batches of requests. Each call returns how many of its requests were decided. */
export const makeBatchDecider = Effect.map(makeWindowReader, (windowsOf) =>
  Effect.fnUntraced(function* (
    decider: Decider,
    requests: ReadonlyArray<PendingRequest>,
    commit: Commit
  ): Effect.fn.Return<number, SqlError.SqlError, Database | Sandbox> {
    const { connectionId } = decider
    const groups = yield* groupByKey(decider, requests)
    const keys = groups.flatMap(({ key }) => (key === null ? [] : [key]))
    const windows = new Map((yield* windowsOf({ connectionId, keys })).map((window) => [window.key, window]))
    const decide = (group: Group) =>
      decideGroup(decider, group, group.key === null ? undefined : windows.get(group.key))
    if (requests.some((request) => request.inOrder)) {
      // All are committed together: otherwise a later event of an ordering key could be stored before an earlier one.
      const all = yield* Effect.forEach(groups, decide, { concurrency })
      const made = new Map(all.flat().map((one) => [one.requestId, one]))
      const those = requests.filter(({ id }) => made.has(id))
      commit(
        those,
        those.map(({ id }) => made.get(id)!)
      )
      return those.length
    }
    let count = 0
    yield* Effect.forEach(
      groups,
      (group) =>
        Effect.map(decide(group), (decided) => {
          count += decided.length
          commit(group.requests, decided)
        }),
      { concurrency, discard: true }
    )
    return count
  })
)
