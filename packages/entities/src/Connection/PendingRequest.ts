import { Effect } from "effect"
import { inSlices, laterTurn } from "@tidegate/runtime/EventLoopBudget"
import { type MessageHead, messageHead } from "@tidegate/model/Message"
import { requestInput, type RequestInput } from "@tidegate/rules/RequestInput"
import type { RequestRecord } from "@tidegate/storage/journal/RequestRecord"
import type { RoutingJobRow } from "@tidegate/storage/delivery/RoutingJobs"

/** A request that waits for a connection's slow rules, with the data that rules see. */
export interface PendingRequest {
  readonly id: string
  readonly teamId: string
  readonly sourceId: string
  /** Unix ms. */
  readonly ingestedAt: number
  /** Encrypted credentials, see `requests`. */
  readonly presented: string | null
  readonly body: Uint8Array
  readonly verified: boolean
  readonly originalIp: string | null
  readonly isReplay: boolean
  /** Whether the request's event count includes this routing job already. */
  readonly counted: boolean
  /** The ordering key of its event; null: none. */
  readonly orderingKey: string | null
  /** Whether its connection had an ordering key when the request was received: then settlements keep the order. */
  readonly inOrder: boolean
  readonly received: MessageHead
  readonly input: RequestInput
}

const noBody = new Uint8Array(0)

/** Builds the request from a row that has waited in SQL. */
export const storedRequest = (row: RoutingJobRow): PendingRequest => {
  const received = messageHead(row)
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

/**
 * Builds a request that has just been committed, for a connection without an ordering key. `received` and `input` are as ingress
 * has parsed them.
 */
export const newRequest = (record: RequestRecord, received: MessageHead, input: RequestInput): PendingRequest => ({
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

/** The estimated bytes of memory that a request takes while it is worked off, with its parsed body and its results. */
export const weightOf = ({ body }: PendingRequest): number => 4 * body.length + 4_096

/** A body of more bytes is parsed, and serialized, within the event-loop budget. */
const largeBody = 64 * 1024

/**
 * Parses a large body within the event-loop budget. It starts in a later iteration of the event loop than the one that stored the
 * request, because that one has used its budget.
 */
export const parseLarge = ({ body, input }: PendingRequest): Effect.Effect<void> =>
  body.length <= largeBody
    ? Effect.void
    : Effect.andThen(
        laterTurn,
        Effect.suspend(() => inSlices(input.parsing()))
      )
