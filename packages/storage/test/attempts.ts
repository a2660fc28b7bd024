import { newId, prefixes } from "@tidegate/model/Ids"
import type { AttemptRecord } from "../src/journal/AttemptStatement.ts"

type Ends = "teamId" | "eventId" | "requestId" | "connectionId" | "sourceId" | "destinationId"

/** The record of an attempt that has just been answered with 200: the first one, and the last. */
export const attemptRecord = (given: Pick<AttemptRecord, Ends> & Partial<AttemptRecord>): AttemptRecord => {
  const now = Date.now()
  return {
    id: newId(prefixes.attempt, now),
    attemptNumber: 1,
    trigger: "INITIAL",
    successful: true,
    responseStatus: 200,
    errorCode: null,
    failureMessage: null,
    body: Buffer.from("ok"),
    responseHeaders: "{}",
    requestedUrl: "http://127.0.0.1/",
    httpMethod: "POST",
    bulkRetryId: null,
    cliId: null,
    deliveredAt: now,
    respondedAt: now,
    deliveryLatency: 1,
    finishedAt: now,
    rootEventId: null,
    eventCreatedAt: now,
    retryAt: null,
    ...given
  }
}
