import type { AttemptFacts, OutboundRequest } from "@tidegate/connectors/Connector"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { type Outcome, unanswered } from "../sending/Attempt.ts"
import type { TunnelEnding } from "./Tunnel.ts"
import type { TunnelJob } from "./TunnelProtocol.ts"

/** A request in the form that a tunnel's client gets, with the client's time for it (ms). */
export const jobOf = (
  { body, headers, method }: Pick<OutboundRequest, "body" | "headers" | "method">,
  path: string,
  facts: AttemptFacts,
  dataId: string | null,
  localUrl: string | null,
  timeoutMs: number
): TunnelJob => ({
  job_id: `${facts.eventId}.${facts.attemptNumber}`,
  timeout_ms: timeoutMs,
  request: JSON.stringify({
    team_id: facts.teamId,
    source_id: facts.sourceId,
    connection_id: facts.connectionId,
    destination_id: facts.destinationId,
    request_id: facts.requestId,
    event_id: facts.eventId,
    event_data_id: dataId ?? sibling(prefixes.eventData, facts.requestId),
    attempt_number: facts.attemptNumber,
    local_url: localUrl,
    method,
    path,
    headers: byName(headers)
  }),
  body
})

/** Headers by name. A repeated header is a list, and a name may be `__proto__`. */
export const byName = (flat: ReadonlyArray<string>): Record<string, string | Array<string>> => {
  const headers = Object.create(null) as Record<string, string | Array<string>>
  for (let i = 0; i < flat.length; i += 2) {
    const name = flat[i]!
    const value = flat[i + 1]!
    const known = headers[name]
    if (known === undefined) headers[name] = value
    else if (typeof known === "string") headers[name] = [known, value]
    else known.push(value)
  }
  return headers
}

/** Converts the end of a delivery through a tunnel to the outcome of its attempt, which had `timeoutMs`. Times are Unix ms. */
export const outcomeOf = (ending: TunnelEnding, startedAt: number, now: number, timeoutMs: number): Outcome => {
  if (ending.kind === "away") {
    return unanswered("CLI_UNAVAILABLE", "nobody holds the tunnel of this destination open", startedAt, now)
  }
  if (ending.kind === "late") {
    return unanswered("TIMEOUT", `the tunnel's client did not answer within ${timeoutMs / 1_000} s`, startedAt, now)
  }
  const { body, body_truncated, failure, headers, status } = ending.result
  return {
    status,
    headers,
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    bodyTruncated: body_truncated,
    errorCode: failure?.code ?? null,
    errorMessage: failure?.message ?? null,
    sentAt: ending.handedAt,
    respondedAt: now
  }
}
