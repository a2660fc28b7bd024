import { describe, expect } from "vitest"
import type { BulkOperation } from "@tidegate/model/BulkOperation"
import type { Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Retries of many at once: contract 7.5. */

type Of = "requests" | "events"

const it = gatewayIt
  .extend("send", ({ gateway }) => async (source: Source, body: unknown = { id: 1 }): Promise<string> => {
    const answer = await request(gateway.port, {
      headers: [["content-type", "application/json"]],
      path: `/e/${source.id}`,
      body: JSON.stringify(body)
    })
    return answer.status === 200 ? String(JSON.parse(answer.body).request_id) : ""
  })
  .extend("create", ({ gateway }) => async (of: Of, filter: object): Promise<BulkOperation> => {
    const { body, status } = await gateway.call("POST", `/${of}/bulk_operations`, filter)
    expect(status).toBe(201)
    return body
  })
  .extend(
    "ended",
    ({ gateway }) =>
      (of: Of, { id }: BulkOperation): Promise<BulkOperation> =>
        gateway.eventually(`${id} has come to its end`, async () => {
          const { body } = await gateway.call("GET", `/${of}/bulk_operations/${id}`)
          return body.cancelable ? null : body
        })
  )
  /** A source with so many events that have failed. */
  .extend("failed", ({ gateway, send, target }) => async (count: number) => {
    target.reply = (response) => void response.writeHead(500).end()
    const route = await gateway.route(target)
    for (let n = 0; n < count; n++) await send(route.source, { n })
    await gateway.eventually("all have failed", async () => {
      const { count: failed } = await gateway.api("GET", `/events/count?status=FAILED&source_id=${route.source.id}`)
      return failed === count ? true : null
    })
    target.reset()
    return route
  })

const counts = ({ done_count, failed_count, queued_count, total_count }: BulkOperation) => [
  total_count,
  queued_count,
  done_count,
  failed_count
]

describe("a bulk retry of events", () => {
  it("retries what its filter finds, once each", async ({ create, ended, failed, gateway, target }) => {
    const { source } = await failed(30)
    await gateway.route(target)
    const before = await create("events", { status: "FAILED", source_id: source.id })
    expect(before).toMatchObject({
      id: expect.stringMatching(/^bch_/),
      type: "event_bulk_retry",
      status: "PLANNED",
      filter: { status: ["FAILED"], source_id: [source.id] },
      cancelable: true,
      finished_at: null
    })
    const after = await ended("events", before)
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 30, 30, 30, 0])
    await target.next(30)
    const bodies = target.received.map(({ body }) => JSON.parse(body.toString()).n)
    expect(bodies.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 30 }, (_, n) => n))
    const retries = await gateway.api("GET", `/events?batch_operation_id=${after.id}`)
    expect(retries.count).toBe(30)
    expect(retries.models[0]).toMatchObject({ is_retry: true, retry_kind: "bulk", retry_operation_id: after.id })
    const targets = await gateway.api("GET", `/events?batch_operation_id=${after.id}&batch_operation_scope=targets`)
    expect(targets.models.map(({ id }) => id).toSorted()).toEqual(
      retries.models.map((retry) => String(retry.retry_parent_event_id)).toSorted()
    )
    // It is recorded after it has come.
    const attempt = await gateway.eventually(
      "its attempt",
      async () => (await gateway.api("GET", `/attempts?event_id=${retries.models[0]!.id}`)).models[0]
    )
    expect(attempt).toMatchObject({ trigger: "BULK_RETRY", bulk_retry_id: after.id, attempt_number: 1 })
    // What it has made is nothing that it finds.
    expect(target.received.length).toBe(30)
  })

  it("of nothing is at its end at once", async ({ create, ended, gateway }) => {
    const source = await gateway.source()
    const after = await ended("events", await create("events", { source_id: source.id }))
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 0, 0, 0, 0])
  })

  it("counts what it cannot retry as failed", async ({ create, ended, failed, gateway }) => {
    const { connection, source } = await failed(3)
    await gateway.api("PUT", `/connections/${connection.id}/pause`)
    const after = await ended("events", await create("events", { source_id: source.id }))
    expect([after.status, ...counts(after)]).toEqual(["FAILED", 3, 0, 0, 3])
  })

  it("keeps the order of its connection", async ({ create, ended, gateway, send, target }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    await gateway.connection(source, destination, [], { ordering: { key: "body.key", on_failure: "block" } })
    for (let n = 0; n < 25; n++) await send(source, { key: "a", n })
    await target.next(25)
    await gateway.eventually("all are recorded", async () => {
      const { count } = await gateway.api("GET", `/events/count?status=SUCCESSFUL&source_id=${source.id}`)
      return count === 25 ? true : null
    })
    await ended("events", await create("events", { source_id: source.id }))
    await target.next(50)
    const order = target.received.map(({ body }) => JSON.parse(body.toString()).n)
    expect(order.slice(25)).toEqual(order.slice(0, 25))
  })
})

describe("a bulk retry of requests", () => {
  it("replays what its filter finds, once each", async ({ create, ended, gateway, send, target }) => {
    const { connection, source } = await gateway.route(target, { rules: [{ type: "deduplicate", window: 3_600_000 }] })
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { allowed_http_methods: ["PUT"] } })
    for (let n = 0; n < 12; n++) await send(source)
    const rejected = await gateway.api("GET", `/requests?status=rejected&source_id=${source.id}`)
    expect(rejected.count).toBe(12)
    const operation = await create("requests", { status: "rejected", source_id: source.id })
    expect(operation).toMatchObject({ type: "request_bulk_retry", filter: { status: ["rejected"] } })
    const after = await ended("requests", operation)
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 12, 12, 12, 0])
    await target.next(12)
    const made = await gateway.api("GET", `/requests?batch_operation_id=${after.id}&connection_id=${connection.id}`)
    expect(made.models.map((one) => String(one.retry_parent_request_id)).toSorted()).toEqual(
      rejected.models.map(({ id }) => id).toSorted()
    )
    expect(made.models[0]).toMatchObject({ status: "accepted", retry_kind: "bulk", retry_operation_id: after.id })
    const history = await gateway.api("GET", "/requests/bulk_operations?bucket=history")
    expect(history.models).toContainEqual(after)
    expect(history.count).toBe(history.models.length)
    expect((await gateway.call("GET", `/events/bulk_operations/${after.id}`)).status).toBe(404)
  })
})

describe("a bulk operation", () => {
  it("can be cancelled until it is at its end", async ({ gateway }) => {
    for (const of of ["requests", "events"] as const) {
      const id = await gateway.heldOperation(of)
      const list = await gateway.api("GET", `/${of}/bulk_operations?bucket=ongoing`)
      expect(list.models.map((one) => one.id)).toEqual([id])
      const { body, status } = await gateway.call("POST", `/${of}/bulk_operations/${id}/cancel`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ id, status: "CANCELLED", cancelable: false, finished_at: expect.any(String) })
      const again = await gateway.call("POST", `/${of}/bulk_operations/${id}/cancel`)
      expect([again.status, again.body.code]).toEqual([409, "BULK_OPERATION_NOT_CANCELABLE"])
    }
  })

  it("is listed by how far it is", async ({ create, ended, gateway }) => {
    const source = await gateway.source()
    const after = await ended("events", await create("events", { source_id: source.id, to: "now-1h", from: "now-2h" }))
    const idsIn = async (query: string) => {
      const list = await gateway.api("GET", `/events/bulk_operations?${query}`)
      return list.models.map(({ id }) => id)
    }
    expect((await idsIn("limit=1"))[0]).toBe(after.id)
    expect(await idsIn("view=history&limit=1")).toEqual([after.id])
    expect(await idsIn("bucket=ongoing")).not.toContain(after.id)
  })

  it("is refused where nothing can be made of it", async ({ gateway }) => {
    const codeOf = async (path: string, body?: object) => {
      const answer = await gateway.call(body === undefined ? "GET" : "POST", path, body)
      return [answer.status, answer.body.code]
    }
    const twice = [
      { from: "now-2h", start: "now-1h" },
      { q: "a", search_term: "b" }
    ]
    for (const filter of [{ status: "DONE" }, { from: "yesterday" }, { q: 1 }, { source_id: {} }, ...twice]) {
      expect(await codeOf("/events/bulk_operations", filter)).toEqual([400, "VALIDATION_ERROR"])
    }
    expect(await codeOf("/requests/bulk_operations", { status: "FAILED" })).toEqual([400, "VALIDATION_ERROR"])
    expect(await codeOf("/events/bulk_operations", { from: "now", to: "now-1h" })).toEqual([400, "INVALID_TIME_RANGE"])
    expect(await codeOf("/events/bulk_operations/bch_none")).toEqual([404, "NOT_FOUND"])
    expect(await codeOf("/events/bulk_operations/bch_none/cancel", {})).toEqual([404, "NOT_FOUND"])
    expect(await codeOf("/events/bulk_operations?bucket=none")).toEqual([400, "VALIDATION_ERROR"])
  })
})
