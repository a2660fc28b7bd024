import type { AttemptFacts, OutboundRequest } from "@tidegate/connectors/Connector"
import { type Outcome, unanswered } from "../sending/Attempt.ts"
import { byName } from "../tunnel/TunnelJob.ts"
import type { PullEnding, Unheld } from "./Polls.ts"
import type { PulledMessage } from "./PullProtocol.ts"

export const receiptOf = (eventId: string, attemptNumber: number): string => `${eventId}.${attemptNumber}`

/** A prepared request in the form that a consumer gets. */
export const pulledMessageOf = (
  { body, headers, method }: Pick<OutboundRequest, "body" | "headers" | "method">,
  path: string,
  facts: AttemptFacts
): PulledMessage => ({
  receipt: receiptOf(facts.eventId, facts.attemptNumber),
  head: JSON.stringify({
    receipt: receiptOf(facts.eventId, facts.attemptNumber),
    event_id: facts.eventId,
    request_id: facts.requestId,
    source_id: facts.sourceId,
    connection_id: facts.connectionId,
    attempt_number: facts.attemptNumber,
    ordering_key: facts.orderingKey,
    method,
    path,
    headers: byName(headers)
  }),
  body
})

const noContent = { status: 204, headers: {}, body: Buffer.alloc(0), bodyTruncated: false } as const

/** The outcome of an attempt whose message a consumer has fetched. Times are Unix ms. */
export const outcomeOf = (ending: Exclude<PullEnding, Unheld>, leaseMs: number, now: number): Outcome => {
  const { leasedAt } = ending
  if (ending.kind === "acknowledged") {
    return { ...noContent, errorCode: null, errorMessage: null, sentAt: leasedAt, respondedAt: now }
  }
  return ending.kind === "expired"
    ? unanswered("TIMEOUT", `the consumer did not acknowledge the message within ${leaseMs / 1_000} s`, leasedAt, now)
    : unanswered("BAD_RESPONSE", `the consumer refused the message: ${ending.reason}`, leasedAt, now)
}
