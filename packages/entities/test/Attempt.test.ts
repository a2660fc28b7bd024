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

const queue: ConnectionQueueSettings = {
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

const begun = (change: Partial<DeliveryItem> = {}, settings: ConnectionQueueSettings | undefined = queue): Attempt => ({
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

describe("Trigger of an attempt", () => {
  const cases: ReadonlyArray<
    readonly [name: string, change: Partial<DeliveryItem>, resumedAt: number, trigger: string]
  > = [
    ["first attempt", {}, 0, "INITIAL"],
    ["first attempt of a manual retry", { trigger: "MANUAL" }, 0, "MANUAL"],
    ["later attempt", { attempts: 1, lastAttemptAt: at - 100 }, 0, "AUTOMATIC"],
    ["pending when the connection was unpaused", {}, at - 1_000, "UNPAUSE"],
    ["attempted since the connection was unpaused", { attempts: 1, lastAttemptAt: at - 100 }, at - 1_000, "AUTOMATIC"],
    ["created after the connection was unpaused", { createdAt: at - 10 }, at - 1_000, "INITIAL"]
  ]
  it.each(cases)("The trigger of an attempt follows from its history (%s)", (_, change, resumedAt, trigger) =>
    expect(begun(change, { ...queue, resumedAt }).trigger).toBe(trigger)
  )
})

describe("Facts about an attempt", () => {
  const facts = (change: Partial<DeliveryItem>) =>
    factsOf(begun(change), queue, { id: "des_1", name: "destination" }, item.payload)

  it("The facts of an attempt name everything that it belongs to", () => {
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
      shown: item.payload,
      orderingKey: null
    })
  })

  it("The last attempt announces no retry", () => {
    expect(facts({ attempts: 3, firstAttemptAt: at - 6_000, lastAttemptAt: at - 2_000 })).toMatchObject({
      attemptNumber: 4,
      willRetryAfter: null,
      webhookId: "evt_1"
    })
  })
})

describe("Verdict of an attempt", () => {
  const judge = () => failed
  it("The sender judges a complete answer", () => expect(verdictOf(answer(500), judge)).toBe(failed))
  it("An incomplete answer is a failure, whatever the sender would say", () => {
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

describe("Record of an attempt", () => {
  it("The record of a successful attempt is final and has the answer", () => {
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

  it("The record of an attempt that sent nothing has no response", () => {
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
    ["status that the rule names", begun(), answer(500), failed, at + 2_050],
    ["status that the rule does not name", begun(), answer(404), failed, null],
    ["failure with status 200", begun(), answer(200), failed, at + 2_050],
    ["no answer", begun(), unanswered("TIMEOUT", "", at, at), failed, at + 2_050],
    [
      "broken answer with a status that the rule does not name",
      begun(),
      { ...answer(404), errorCode: "SOCKET_CLOSED" },
      failed,
      at + 2_050
    ],
    ["final failure", begun(), answer(500), final, null],
    ["last attempt", begun({ attempts: 3, firstAttemptAt: at }), answer(500), failed, null],
    ["target that says when", begun(), answer(500, { "retry-after": "7" }), failed, at + 7_050],
    ["no rule", begun({}, { ...queue, retry: null }), answer(500), failed, null]
  ]
  it.each(retries)("The next retry follows the rule and the answer (%s)", (_, attempt, outcome, verdict, retryAt) =>
    expect(recorded(attempt, outcome, verdict).retryAt).toBe(retryAt)
  )

  it("The attempt of an unknown connection is the last one", () => {
    const attempt = beginAttempt(item, undefined, at, null)
    expect(recorded(attempt, answer(500), failed).retryAt).toBeNull()
  })
})

describe("Next wait of an event", () => {
  it("A retried event counts its attempts and keeps the time of the first one", () => {
    const first = recorded(begun(), answer(500), failed)
    const next = retryOf(item, first, first.retryAt!)
    expect(next).toEqual({ ...item, attempts: 1, dueAt: at + 2_050, firstAttemptAt: at + 3, lastAttemptAt: at + 50 })
    const second = recorded(begun(next), { ...answer(500), sentAt: at + 2_060 }, failed)
    expect(retryOf(next, second, at + 9_000)).toMatchObject({ attempts: 2, firstAttemptAt: at + 3 })
  })
})
