import { Effect } from "effect"
import { laterTurn, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import { type MessageHead, storedHeaders } from "@tidegate/model/Message"
import type { FilterInput } from "@tidegate/rules/Filter"
import { requestInput } from "@tidegate/rules/RequestInput"
import type { RequestRecord } from "@tidegate/storage/journal/AcceptStatement"
import type { RoutingJobRow } from "@tidegate/storage/delivery/RoutingJobs"

/** A request that waits for a connection's slow rules, and what rules see of it. */
export interface PendingRequest {
  readonly id: string
  readonly teamId: string
  readonly sourceId: string
  /** Unix ms. */
  readonly ingestedAt: number
  /** Sealed credentials, see `requests`. */
  readonly presented: string | null
  readonly body: Uint8Array
  readonly verified: boolean
  readonly originalIp: string | null
  readonly isReplay: boolean
  /** Whether the request counts this route as an event already. */
  readonly counted: boolean
  /** The line that its event goes into; null: none. */
  readonly orderingKey: string | null
  /** Whether its connection kept an order when it came: it is settled in that. */
  readonly inOrder: boolean
  readonly received: MessageHead
  readonly input: FilterInput
}

const noBody = new Uint8Array(0)

/** One that has waited in SQL. */
export const storedRequest = (row: RoutingJobRow): PendingRequest => {
  const received = { method: row.method, path: row.path, query: row.query, headers: storedHeaders(row) }
  const body = row.body ?? noBody
  return {
    id: row.request_id,
    teamId: row.team_id,
    sourceId: row.source_id,
    ingestedAt: row.ingested_at.getTime(),
    presented: row.presented,
    body,
    verified: row.verified,
    originalIp: row.original_ip,
    isReplay: row.retry_kind !== null,
    counted: row.counted,
    orderingKey: row.ordering_key,
    inOrder: row.place !== null,
    received,
    input: requestInput(received, body)
  }
}

/** One that has just been committed, on a connection that keeps no order. `received` and `input`: as its door has seen them. */
export const newRequest = (record: RequestRecord, received: MessageHead, input: FilterInput): PendingRequest => ({
  id: record.id,
  teamId: record.teamId,
  sourceId: record.sourceId,
  ingestedAt: record.ingestedAt,
  presented: record.presented,
  body: record.body ?? noBody,
  verified: record.verified,
  originalIp: record.originalIp,
  isReplay: false,
  counted: true,
  orderingKey: null,
  inOrder: false,
  received,
  input
})

/** What it weighs in memory while it is worked off, its parsed body and what becomes of it included: an estimate in bytes. */
export const weightOf = ({ body }: PendingRequest): number => 4 * body.length + 4_096

/** A body of more bytes is parsed, and written again, in parts of their own. */
const largeBody = 64 * 1024

/** Parses a large body, in turn with other long work. Not in the turn in which it was stored: that has its share already. */
export const parseLarge = ({ body, input }: PendingRequest): Effect.Effect<void> =>
  body.length <= largeBody
    ? Effect.void
    : Effect.andThen(
        laterTurn,
        Effect.suspend(() => {
          const since = performance.now()
          input.body()
          return yieldIfSpent(since)
        })
      )
