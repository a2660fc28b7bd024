import { describe, expect } from "vitest"
import type { Body } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What the records of a delivery tell beside its outcome. */

const it = gatewayIt.extend("retried", ({ gateway, target }) => async () => {
  // The second attempt is on the wire until the first one has been looked at.
  const looked = Promise.withResolvers<void>()
  target.reply = async (response) => {
    const isFirst = target.received.length === 1
    if (!isFirst) await looked.promise
    response.writeHead(isFirst ? 503 : 201, { "x-told": "by the target" }).end("told")
  }
  const { connection, destination, source } = await gateway.route(target, {
    rules: [{ type: "retry", strategy: "linear", interval: 1_000, count: 1 }]
  })
  await fetch(`${source.url}/orders?page=2`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-sent": "by the sender" },
    body: '{"id":1}'
  })
  const failed = await gateway.eventually("the first attempt", async () => {
    const { models } = await gateway.api("GET", `/events?source_id=${source.id}`)
    return models[0]?.attempts === 1 ? models[0] : null
  })
  looked.resolve()
  const event = await gateway.eventually("the second attempt", async () => {
    const { body } = await gateway.call("GET", `/events/${failed.id}`)
    return body.status === "SUCCESSFUL" ? body : null
  })
  return { connection, destination, event, failed, source }
})

const time = (text: unknown): number => Date.parse(String(text))

describe("Records", () => {
  it("The records of an event and its attempts show what happened and when", async ({ gateway, retried, target }) => {
    const { connection, destination, event, failed, source } = await retried()
    const [second, first]: ReadonlyArray<Body> = (await gateway.call("GET", `/attempts?event_id=${event.id}`)).body
      .models

    const belongs = { connection_id: connection.id, source_id: source.id, destination_id: destination.id }
    const sent = { ...belongs, event_id: event.id, request_id: event.request_id, webhook_id: connection.id }
    const where = { http_method: "PUT", requested_url: `${target.origin}/orders?page=2` }
    const headers = expect.objectContaining({ "x-told": "by the target" })
    const answered = {
      ...sent,
      ...where,
      body: "told",
      body_encoding: "text",
      response_headers: headers,
      bulk_retry_id: null
    }
    expect(first).toMatchObject({
      ...answered,
      attempt_number: 1,
      trigger: "INITIAL",
      status: "FAILED",
      response_status: 503,
      error_code: "BAD_RESPONSE",
      successful_at: null
    })
    expect(second).toMatchObject({
      ...answered,
      attempt_number: 2,
      trigger: "AUTOMATIC",
      status: "SUCCESSFUL",
      response_status: 201,
      error_code: null
    })
    for (const { delivered_at, delivery_latency, responded_at, response_latency } of [first, second]) {
      expect(delivery_latency).toBeGreaterThanOrEqual(0)
      expect(time(responded_at) - time(delivered_at)).toBe(response_latency)
    }
    expect(time(second.successful_at)).toBeGreaterThanOrEqual(time(second.responded_at))

    expect(failed).toMatchObject({
      attempts: 1,
      response_status: 503,
      error_code: "BAD_RESPONSE",
      last_attempt_at: first.delivered_at,
      successful_at: null
    })
    expect(time(failed.next_attempt_at)).toBeGreaterThan(time(first.responded_at))
    expect(event).toMatchObject({
      ...belongs,
      webhook_id: connection.id,
      attempts: 2,
      response_status: 201,
      error_code: null,
      failure_message: null,
      rejection_cause: null,
      ignored_reason: null,
      cli_id: null,
      last_attempt_at: second.delivered_at,
      next_attempt_at: null,
      successful_at: second.successful_at
    })
    const request = (await gateway.call("GET", `/requests/${event.request_id}`)).body
    expect(request).toMatchObject({ events_count: 1, ignored_count: 0, cli_events_count: 0 })
    expect(event.ingested_at).toBe(request.ingested_at)
  })

  it("The record of an event contains what was sent and what was answered", async ({ gateway, retried, target }) => {
    const { event, source } = await retried()
    const { models } = (await gateway.call("GET", `/events?source_id=${source.id}&include=data`)).body
    expect(models[0].data).toEqual((await gateway.call("GET", `/events/${event.id}`)).body.data)
    expect(models[0].data).toMatchObject({
      request: {
        method: "PUT",
        url: `${target.origin}/orders?page=2`,
        path: "/orders",
        query: "page=2",
        headers: { "x-sent": "by the sender" },
        body: { id: 1 },
        encoding: "json",
        is_large_payload: false
      },
      response: { status: 201, headers: { "x-told": "by the target" }, body: "told", encoding: "text" }
    })
  })

  it("The latest input of a connection is the last request of its source", async ({ gateway, retried }) => {
    const { connection, event, source } = await retried()
    const { latest_input } = (await gateway.call("GET", `/connections/${connection.id}/latest-input`)).body
    const { original_event_data_id, created_at } = (await gateway.call("GET", `/requests/${event.request_id}`)).body
    expect(latest_input).toMatchObject({
      source_id: source.id,
      request_id: event.request_id,
      original_event_data_id,
      created_at,
      payload_key: expect.any(String),
      input: { method: "PUT", path: "/orders", headers: { "x-sent": "by the sender" }, body: { id: 1 } }
    })
  })

  it("A bulk operation's record contains the whole filter with which it was made", async ({ gateway }) => {
    const filter = {
      from: "2026-01-01T00:00:00.000Z",
      to: "2026-01-02T00:00:00.000Z",
      status: ["FAILED", "CANCELLED"],
      source_id: [(await gateway.source()).id],
      connection_id: ["web_1"],
      destination_id: ["des_1", "des_2"],
      is_retry: true,
      retry_kind: "single",
      error_code: ["TIMEOUT"],
      response_status: ["500-599"],
      resolved: true,
      q: "order-1"
    }
    const made = await gateway.call("POST", "/events/bulk_operations", filter)
    expect(made.body.filter).toEqual(filter)
    expect((await gateway.call("GET", `/events/bulk_operations/${made.body.id}`)).body.filter).toEqual(filter)
  })

  it("A bulk operation's filter is shown with the names that lists use, whatever names were sent", async ({
    gateway
  }) => {
    const window = { start: "2026-01-01T00:00:00.000Z", end: "2026-01-02T00:00:00.000Z" }
    const stored = { from: window.start, to: window.end, q: "order-1" }
    for (const text of [{ search: "order-1" }, { search_term: "order-1" }]) {
      const ofRequests = await gateway.call("POST", "/requests/bulk_operations", { ...window, ...text })
      expect(ofRequests.body.filter).toEqual(stored)
      const body = { ...window, ...text, webhook_id: ["web_1"] }
      const ofEvents = await gateway.call("POST", "/events/bulk_operations", body)
      expect(ofEvents.body.filter).toEqual({ ...stored, connection_id: ["web_1"], resolved: false })
    }
  })

  it("The event feed filters only by members that never change, and not by time or state", async ({ gateway }) => {
    const lasting = {
      request_id: "req_1",
      source_id: "src_1",
      connection_id: "web_1",
      destination_id: "des_1",
      batch_operation_id: "bch_1",
      is_retry: "true",
      retry_kind: "bulk",
      q: "order-1"
    }
    const begun = await gateway.call("GET", `/events?after=now&${new URLSearchParams(lasting).toString()}`)
    expect([begun.status, begun.body.models, begun.body.has_more]).toEqual([200, [], false])
    const refused = {
      from: "now-1h",
      to: "now",
      start: "now-1h",
      end: "now",
      cursor: "x",
      next: "x",
      status: "FAILED",
      error_code: "TIMEOUT",
      response_status: "500",
      resolved: "false",
      batch_operation_scope: "targets"
    }
    for (const [name, value] of Object.entries(refused)) {
      const { body, status } = await gateway.call("GET", `/events?after=now&${name}=${value}`)
      expect([status, body.code, body.data?.fields[0].path]).toEqual([400, "VALIDATION_ERROR", name])
    }
  })

  it("Project secrets show when they were last rotated", async ({ gateway }) => {
    const { body } = await gateway.call("POST", "/project-secrets/rotate", { rotate: ["signing_secret"] })
    const read = (await gateway.call("GET", "/project-secrets")).body
    expect(read.signing_secret).toEqual({
      masked_value: body.signing_secret.masked_value,
      has_secret: true,
      last_rotated_at: body.signing_secret.last_rotated_at
    })
    expect(time(read.signing_secret.last_rotated_at)).toBeGreaterThan(time(read.created_at))
  })
})
