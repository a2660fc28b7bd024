import { type Message, type MessageHead, messageHead } from "@tidegate/model/Message"
import type { PendingEventRow } from "@tidegate/storage/delivery/DeliveryRows"
import type { RequestRecord, RoutedEvent } from "@tidegate/storage/journal/RequestRecord"

/** The inbound request as a destination needs it; shared by all events of one request. */
export interface DeliveryPayload extends Message {
  readonly requestId: string
  /** The id of a transformation's result, when that is what is sent; null: the request as received. */
  readonly dataId: string | null
  /** The encrypted credentials that the sender presented; headers and query have masks instead. Null: none. */
  readonly presented: string | null
  readonly verified: boolean
  readonly originalIp: string | null
}

/** A pending event in a destination's window. Times are Unix milliseconds. */
export interface DeliveryItem {
  readonly eventId: string
  readonly teamId: string
  readonly connectionId: string
  readonly sourceId: string
  readonly createdAt: number
  readonly dueAt: number
  /** Attempts recorded so far. */
  readonly attempts: number
  readonly firstAttemptAt: number | null
  readonly lastAttemptAt: number | null
  /** The trigger of its first attempt: INITIAL, MANUAL or BULK_RETRY. */
  readonly trigger: string
  /** The first ancestor of a retry event; null when it is not one. */
  readonly rootEventId: string | null
  readonly retryOperationId: string | null
  /** The ordering key; null: none. */
  readonly orderingKey: string | null
  /** Its position among the events of that key; null: it has none, or it is not known here. */
  readonly place: number | null
  readonly payload: DeliveryPayload
  /** Its body has left memory, because a consumer has it: another attempt reads it from SQL. */
  readonly isBodiless?: true
}

/** How early an event may wait in memory for its due time (ms). The poller finds later ones. */
export const horizonMs = 30_000

/** The estimated bytes of memory of an item; never far too low. */
export const weightOf = (item: DeliveryItem): number => item.payload.body.length + 2048

const noBody = new Uint8Array(0)

export const withoutBody = (item: DeliveryItem): DeliveryItem => ({
  ...item,
  payload: { ...item.payload, body: noBody },
  isBodiless: true
})

/** The request of one or more events: its content, and what the gateway knows about it. */
export const payloadOf = (
  { headers, method, path, query }: MessageHead,
  request: Pick<RequestRecord, "id" | "presented" | "body" | "verified" | "originalIp">,
  dataId: string | null = null
): DeliveryPayload => ({
  requestId: request.id,
  dataId,
  method,
  path,
  query,
  headers,
  presented: request.presented,
  // The body is empty when retention has removed it or there never was one.
  body: request.body ?? noBody,
  verified: request.verified,
  originalIp: request.originalIp
})

/** An event that has just been committed, before its first attempt. */
export const newItem = (
  { connectionId, dueAt, id, orderingKey }: Pick<RoutedEvent, "id" | "connectionId" | "dueAt" | "orderingKey">,
  request: Pick<RequestRecord, "teamId" | "sourceId">,
  createdAt: number,
  payload: DeliveryPayload
): DeliveryItem => ({
  eventId: id,
  teamId: request.teamId,
  connectionId,
  sourceId: request.sourceId,
  createdAt,
  dueAt,
  attempts: 0,
  firstAttemptAt: null,
  lastAttemptAt: null,
  trigger: "INITIAL",
  rootEventId: null,
  retryOperationId: null,
  orderingKey,
  place: null,
  payload
})

/** An event that has waited in SQL. */
export const storedItem = (row: PendingEventRow): DeliveryItem => ({
  eventId: row.id,
  teamId: row.team_id,
  connectionId: row.connection_id,
  sourceId: row.source_id,
  createdAt: row.created_at.getTime(),
  dueAt: row.due_at.getTime(),
  attempts: row.attempts,
  firstAttemptAt: row.first_attempt_at?.getTime() ?? null,
  lastAttemptAt: row.last_attempt_at?.getTime() ?? null,
  trigger: row.trigger,
  rootEventId: row.root_event_id,
  retryOperationId: row.retry_operation_id,
  orderingKey: row.ordering_key,
  place: row.place,
  payload: payloadOf(
    messageHead(row),
    {
      id: row.request_id,
      presented: row.presented,
      body: row.body,
      verified: row.verified,
      originalIp: row.original_ip
    },
    row.event_data_id
  )
})
