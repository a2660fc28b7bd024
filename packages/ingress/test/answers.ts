import type { Answer } from "../../egress/src/Exchange.ts"

/** What a host answers to a request of the gateway's own; null: nothing, until the time was up. */
export const answer = (status: number | null, body = ""): Answer => ({
  status,
  headers: {},
  body: Buffer.from(body),
  bodyTruncated: false,
  errorCode: status === null ? "TIMEOUT" : null,
  errorMessage: status === null ? "no answer" : null,
  sentAt: 0,
  respondedAt: 0
})
