/** The inbound request as a destination needs it; shared by the events that one request became. */
export interface DeliveryPayload {
  readonly requestId: string
  readonly method: string
  readonly path: string
  /** Without the question mark. */
  readonly query: string
  /** Lower-case names; a repeated header is an array. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  /** The credentials that the sender presented, sealed; headers and query have masks in their place. Null: none. */
  readonly presented: string | null
  readonly body: Uint8Array
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
  readonly payload: DeliveryPayload
}

/** What an item weighs in memory, in bytes: an estimate that is never far below. */
export const weightOf = (item: DeliveryItem): number => item.payload.body.length + 2048
