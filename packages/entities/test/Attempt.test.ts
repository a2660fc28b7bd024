import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { compileRetry } from "@tidegate/rules/Retry"
import {
  type Attempt,
  beginAttempt,
  factsOf,
  type Outcome,
  recordOf,
  retryOf,
  unanswered,
  verdictOf
} from "../src/Destination/sending/Attempt.ts"
import { type DeliveryItem, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import type { ConnectionQueueSettings } from "../src/Destination/DestinationState.ts"

/** An attempt without a loop: what it says, and what becomes of the event. */

const at = 1_700_000_000_000

const item = newItem(
  { id: "evt_1", connectionId: "con_1", dueAt: at - 5_000, orderingKey: null },
  { teamId: "tm_1", sourceId: "src_1" },
  at - 5_000,
  {
    requestId: "req_1",
    dataId: null,
    method: "PUT",
    path: "/",
    query: "",
    headers: {},
    presented: null,
    body: Buffer.from("{}"),
    verified: true,
    originalIp: null
  }
)

const lane: ConnectionQueueSettings = {
  id: "con_1",
  name: "connection",
  sourceName: "source",
  state: "open",
  cancelBefore: 0,
  resumedAt: 0,
  retry: Result.getOrThrow(
    compileRetry({
      type: "retry",
      strategy: "linear",
      interval: 2_000,
      count: 3,
      response_status_codes: ["500-599"]
    })
  )
}

const begun = (change: Partial<DeliveryItem> = {}, settings: ConnectionQueueSettings | undefined = lane): Attempt => ({
  ...beginAttempt({ ...item, ...change }, settings, at, null),
  url: "http://target.test/shown"
})

const answer = (status: number, headers: Outcome["headers"] = {}): Outcome => ({
  status,
  headers,
  body: Buffer.from("said"),
  bodyTruncated: false,
  errorCode: null,
  errorMessage: null,
  sentAt: at + 3,
  respondedAt: at + 40
})

const failed = { code: "BAD_RESPONSE", message: "HTTP 500 from destination", final: false } as const
const recorded = (attempt: Attempt, outcome: Outcome, verdict: Parameters<typeof recordOf>[3]) =>
  recordOf(attempt, "des_1", outcome, verdict, at + 50, 0.5)

describe("the trigger of an attempt", () => {
  const cases: ReadonlyArray<
    readonly [name: string, change: Partial<DeliveryItem>, resumedAt: number, trigger: string]
  > = [
    ["the first", {}, 0, "INITIAL"],
    ["the first of a manual retry", { trigger: "MANUAL" }, 0, "MANUAL"],
    ["a later one", { attempts: 1, lastAttemptAt: at - 100 }, 0, "AUTOMATIC"],
    ["what was pending when the connection was unpaused", {}, at - 1_000, "UNPAUSE"],
    ["what has been tried since", { attempts: 1, lastAttemptAt: at - 100 }, at - 1_000, "AUTOMATIC"],
    ["what came after", { createdAt: at - 10 }, at - 1_000, "INITIAL"]
  ]
  it.each(cases)("%s", (_, change, resumedAt, trigger) =>
    expect(begun(change, { ...lane, resumedAt }).trigger).toBe(trigger)
  )
})

describe("what an attempt says of itself", () => {
  const facts = (change: Partial<DeliveryItem>) =>
    factsOf(begun(change), lane, { id: "des_1", name: "destination" }, item.payload)

  it("names all it belongs to", () => {
    expect(facts({ rootEventId: "evt_0" })).toEqual({
      eventId: "evt_1",
      requestId: "req_1",
      teamId: "tm_1",
      sourceId: "src_1",
      connectionId: "con_1",
      destinationId: "des_1",
      webhookId: "evt_0",
      attemptNumber: 1,
      trigger: "INITIAL",
      willRetryAfter: 2,
      sourceName: "source",
      connectionName: "connection",
      destinationName: "destination",
      verified: true,
      originalIp: null,
      createdAt: at - 5_000,
      timestampSeconds: at / 1_000,
      shown: item.payload
    })
  })

  it("promises no retry with the last one", () => {
    expect(facts({ attempts: 3, firstAttemptAt: at - 6_000, lastAttemptAt: at - 2_000 })).toMatchObject({
      attemptNumber: 4,
      willRetryAfter: null,
      webhookId: "evt_1"
    })
  })
})

describe("a verdict", () => {
  const judge = () => failed
  it("is the sender's of an answer in full", () => expect(verdictOf(answer(500), judge)).toBe(failed))
  it("is a failure without one, whatever the sender would say", () => {
    expect(verdictOf(unanswered("TIMEOUT", "no full answer", at, at), () => "successful")).toEqual({
      code: "TIMEOUT",
      message: "no full answer",
      final: false
    })
    expect(verdictOf({ ...answer(200), errorCode: "SOCKET_CLOSED" }, () => "successful")).toMatchObject({
      code: "SOCKET_CLOSED"
    })
  })
})

describe("the record of an attempt", () => {
  it("of a success is final, and has what was answered", () => {
    expect(recorded(begun(), answer(204, { "x-a": "b" }), "successful")).toMatchObject({
      eventId: "evt_1",
      destinationId: "des_1",
      attemptNumber: 1,
      successful: true,
      responseStatus: 204,
      errorCode: null,
      failureMessage: null,
      responseHeaders: '{"x-a":"b"}',
      requestedUrl: "http://target.test/shown",
      httpMethod: "PUT",
      deliveredAt: at + 3,
      respondedAt: at + 40,
      deliveryLatency: 3,
      finishedAt: at + 50,
      rootEventId: null,
      eventCreatedAt: item.createdAt,
      retryAt: null
    })
  })

  it("of nothing sent has no response", () => {
    const outcome = unanswered("INTERNAL_ERROR", "a reason", at, at)
    const verdict = { code: "INTERNAL_ERROR", message: "a reason", final: false } as const
    expect(recorded(begun(), outcome, verdict)).toMatchObject({
      successful: false,
      responseStatus: null,
      responseHeaders: null,
      body: null,
      respondedAt: null,
      deliveryLatency: 0,
      failureMessage: "a reason"
    })
  })

  const final = { ...failed, final: true }
  const retries: ReadonlyArray<
    readonly [
      name: string,
      attempt: Attempt,
      outcome: Outcome,
      verdict: typeof final | typeof failed,
      retryAt: number | null
    ]
  > = [
    ["a status that the rule names", begun(), answer(500), failed, at + 2_050],
    ["a status that it does not name", begun(), answer(404), failed, null],
    ["a 200 that is a failure all the same", begun(), answer(200), failed, at + 2_050],
    ["no answer", begun(), unanswered("TIMEOUT", "", at, at), failed, at + 2_050],
    [
      "a broken answer with a status that it does not name",
      begun(),
      { ...answer(404), errorCode: "SOCKET_CLOSED" },
      failed,
      at + 2_050
    ],
    ["what is final", begun(), answer(500), final, null],
    ["the last", begun({ attempts: 3, firstAttemptAt: at }), answer(500), failed, null],
    ["a target that says when", begun(), answer(500, { "retry-after": "7" }), failed, at + 7_050],
    ["no rule", begun({}, { ...lane, retry: null }), answer(500), failed, null]
  ]
  it.each(retries)("is due again: %s", (_, attempt, outcome, verdict, retryAt) =>
    expect(recorded(attempt, outcome, verdict).retryAt).toBe(retryAt)
  )

  it("of an unknown connection is the last", () => {
    const attempt = beginAttempt(item, undefined, at, null)
    expect(recorded(attempt, answer(500), failed).retryAt).toBeNull()
  })
})

describe("the next wait", () => {
  it("counts the attempt, and keeps when the first one was", () => {
    const first = recorded(begun(), answer(500), failed)
    const next = retryOf(item, first, first.retryAt!)
    expect(next).toEqual({ ...item, attempts: 1, dueAt: at + 2_050, firstAttemptAt: at + 3, lastAttemptAt: at + 50 })
    const second = recorded(begun(next), { ...answer(500), sentAt: at + 2_060 }, failed)
    expect(retryOf(next, second, at + 9_000)).toMatchObject({ attempts: 2, firstAttemptAt: at + 3 })
  })
})
