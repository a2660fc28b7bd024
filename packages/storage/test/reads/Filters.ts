import type { AttemptFilter } from "../../src/reads/AttemptReads.ts"
import type { EventFilter } from "../../src/reads/EventReads.ts"
import type { RequestFilter } from "../../src/reads/RequestReads.ts"

/** Filters that leave nothing out: a test says beside them what it asks for. */

export const anyEvent: EventFilter = {
  statuses: [],
  sources: [],
  connections: [],
  destinations: [],
  operation: undefined,
  operationScope: "retries",
  search: undefined
}

export const anyRequest: RequestFilter = {
  status: undefined,
  verified: undefined,
  sources: [],
  connections: [],
  operation: undefined,
  isRetry: undefined,
  retryKind: undefined,
  search: undefined
}

export const anyAttempt: AttemptFilter = {
  events: [],
  request: undefined,
  connections: [],
  destinations: [],
  status: undefined,
  search: undefined
}

/** The first page of all time. */
export const firstPage = { key: "test", window: {}, cursor: undefined, limit: 100 }
