import type { Anything } from "./Reference.ts"

/** The outputs of steps that wait. What nobody has sent in time is null. */

interface Released {
  readonly released_at: string
}

/** Of an approval: who has decided, how, and when. */
export interface Decided extends Released {
  readonly decision: "approved" | "rejected"
  readonly comment: string
  readonly decided_by: "user" | "api_key" | "link"
  readonly decided_by_user_id: string
  readonly decided_by_name: string
  readonly decided_at: string
}

/** Of a callback: what the other program has sent. */
export interface CalledBack extends Released {
  readonly method: string
  readonly headers: Anything
  readonly query: Anything
  readonly body: Anything
  readonly received_at: string
}

/** Of a wait for a request at a source: the request. */
export interface Arrived extends CalledBack {
  readonly request_id: string
  readonly path: string
  readonly body_omitted: boolean
}
