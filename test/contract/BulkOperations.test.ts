import { describe, expect } from "vitest"
import type { BulkOperation } from "@tidegate/model/BulkOperation"
import type { Rules, Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/** Retries of many at once: contract 7.5. */

type Of = "requests" | "events" | "ignored_events"

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

describe("Bulk retry of events", () => {
  it("A bulk retry of events retries each event that its filter matches once", async ({
    create,
    ended,
    failed,
    gateway,
    target
  }) => {
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

  it("A bulk retry of no events is complete at once", async ({ create, ended, gateway }) => {
    const source = await gateway.source()
    const after = await ended("events", await create("events", { source_id: source.id }))
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 0, 0, 0, 0])
  })

  it("A bulk retry marks the events that it resolved and does not send them again", async ({
    create,
    ended,
    failed,
    gateway,
    send,
    target
  }) => {
    const { source } = await failed(6)
    const of = `source_id=${source.id}`
    const count = async (query: string) => (await gateway.api("GET", `/events/count?${of}&${query}`)).total
    expect(await count("status=FAILED&resolved=false")).toBe(6)
    const first = await create("events", { status: "FAILED", source_id: source.id })
    expect(first.filter).toMatchObject({ resolved: false })
    expect(counts(await ended("events", first))).toEqual([6, 6, 6, 0])
    await gateway.eventually("all are resolved", async () => ((await count("resolved=true")) === 6 ? true : null))
    const { models } = await gateway.api("GET", `/events?${of}&status=FAILED`)
    const retries = await gateway.api("GET", `/events?batch_operation_id=${first.id}`)
    for (const event of models) {
      const retry = retries.models.find((one) => one.retry_parent_event_id === event.id)!
      expect(event).toMatchObject({
        status: "FAILED",
        resolved_by_event_id: retry.id,
        resolved_at: retry.successful_at
      })
      expect(retry).toMatchObject({ resolved_at: null, resolved_by_event_id: null })
    }
    // A second operation with the same filters finds nothing. Resolved events are retried only if the caller asks for it.
    const again = await ended("events", await create("events", { status: "FAILED", source_id: source.id }))
    expect(counts(again)).toEqual([0, 0, 0, 0])
    expect(target.received.length).toBe(6)
    expect(counts(await ended("events", await create("events", { ...first.filter, resolved: true })))[0]).toBe(6)
    await target.next(12)
    // A retry that fails resolves nothing; the retry of that retry resolves both.
    target.reply = (response) => void response.writeHead(500).end()
    const request = await send(source)
    const failedOf = (n: number) =>
      gateway.eventually("it has failed", async () => {
        const found = await gateway.api("GET", `/events?request_id=${request}&status=FAILED`)
        return found.count === n ? found.models : null
      })
    const [original] = await failedOf(1)
    const { replay_event_id } = await gateway.api("POST", `/events/${original!.id}/retry`)
    for (const { resolved_at } of await failedOf(2)) expect(resolved_at).toBeNull()
    target.reset()
    const last = await gateway.api("POST", `/events/${replay_event_id}/retry`)
    await gateway.eventually("both are resolved", async () => {
      const found = await gateway.api("GET", `/events?request_id=${request}&resolved=true`)
      return found.count === 2 && found.models.every((one) => one.resolved_by_event_id === last.replay_event_id)
        ? true
        : null
    })
  })

  it("A bulk retry without confirmation is only a plan until it is started", async ({
    create,
    ended,
    failed,
    gateway,
    target
  }) => {
    const { source } = await failed(12)
    const plan = await create("events", { status: "FAILED", source_id: source.id, confirm: false, rate: 500 })
    const path = `/events/bulk_operations/${plan.id}`
    const planned = await gateway.eventually("it is planned", async () => {
      const { body } = await gateway.call("GET", path)
      return body.planned_at === null ? null : body
    })
    expect(planned).toMatchObject({ status: "PLANNED", total_count: 12, confirmed: false, rate: 500, started_at: null })
    const newest = await gateway.api("GET", `/events?source_id=${source.id}&limit=10`)
    expect(planned.sample).toEqual(newest.models.map(({ id }) => id))
    expect(target.received.length).toBe(0)
    expect(await gateway.api("POST", `${path}/run`)).toMatchObject({ status: "RUNNING", confirmed: true })
    expect(counts(await ended("events", plan))).toEqual([12, 12, 12, 0])
    // Again it changes nothing.
    expect(await gateway.api("POST", `${path}/run`)).toMatchObject({ status: "COMPLETED", total_count: 12 })
    await target.next(12)
    const other = await create("events", { source_id: source.id, confirm: false, resolved: true })
    await gateway.call("POST", `/events/bulk_operations/${other.id}/cancel`)
    const refused = await gateway.call("POST", `/events/bulk_operations/${other.id}/run`)
    expect([refused.status, refused.body.code]).toEqual([409, "BULK_OPERATION_NOT_RUNNABLE"])
  })

  it("A bulk retry counts events that it cannot retry as failed", async ({ create, ended, failed, gateway }) => {
    const { connection, source } = await failed(3)
    await gateway.api("PUT", `/connections/${connection.id}/pause`)
    const after = await ended("events", await create("events", { source_id: source.id }))
    expect([after.status, ...counts(after)]).toEqual(["FAILED", 3, 0, 0, 3])
  })

  it("A bulk retry keeps the order of an ordered connection", async ({ create, ended, gateway, send, target }) => {
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

describe("Bulk retry of requests", () => {
  it("A bulk retry of requests replays each request that its filter matches once", async ({
    create,
    ended,
    gateway,
    send,
    target
  }) => {
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

describe("Bulk cancellation", () => {
  it("A bulk cancellation removes only waiting events from their queue, also in memory", async ({
    create,
    ended,
    gateway,
    send,
    target
  }) => {
    const held = await gateway.route(target)
    await gateway.api("PUT", `/connections/${held.connection.id}/pause`)
    const slow = await gateway.route(target, { destination: { rate_limit: 1, rate_limit_period: "hour" } })
    for (let n = 0; n < 6; n++) {
      await send(held.source)
      await send(slow.source)
    }
    const count = async (source: Source, query: string) =>
      (await gateway.api("GET", `/events/count?source_id=${source.id}&${query}`)).total
    await gateway.eventually("one is delivered, the rest waits for its turn", async () =>
      (await count(slow.source, "status=SUCCESSFUL")) === 1 ? true : null
    )
    const operation = await create("events", { action: "cancel", source_id: [held.source.id, slow.source.id] })
    expect(operation).toMatchObject({
      type: "event_bulk_cancel",
      filter: { status: ["SCHEDULED", "QUEUED", "HOLD"] }
    })
    const after = await ended("events", operation)
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 11, 11, 11, 0])
    expect(await count(held.source, "status=CANCELLED&error_code=CANCELLED")).toBe(6)
    expect(await count(slow.source, "status=CANCELLED")).toBe(5)
    // Nothing of it comes when it could: neither from SQL nor from what was in memory.
    await gateway.api("PUT", `/connections/${held.connection.id}/unpause`)
    await gateway.api("PATCH", `/destinations/${slow.destination.id}`, { config: { rate_limit: null } })
    await send(held.source, { last: true })
    await send(slow.source, { last: true })
    await target.next(3)
    await gateway.settled()
    expect(target.received.length).toBe(3)
    const ended_ = await gateway.call("POST", "/events/bulk_operations", { action: "cancel", status: "FAILED" })
    expect([ended_.status, ended_.body.data.fields[0].path]).toEqual([400, "status"])
  })
})

describe("Bulk retry of ignored events", () => {
  it("A bulk retry of ignored events replays each request to its connection by the current rules", async ({
    create,
    ended,
    gateway,
    send,
    target
  }) => {
    const rules: Rules = [{ type: "filter", body: { id: 2 } }]
    const { connection, source } = await gateway.route(target, { rules })
    const other = await gateway.connection(source, await gateway.destination({ url: target.origin }))
    for (let n = 0; n < 4; n++) await send(source)
    await target.next(4)
    const ignored = await gateway.eventually("all are ignored", async () => {
      const list = await gateway.api("GET", `/ignored_events?source_id=${source.id}&cause=FILTERED`)
      return list.count === 4 ? list : null
    })
    expect((await gateway.api("GET", `/ignored_events/count?connection_id=${connection.id}`)).total).toBe(4)
    expect((await gateway.api("GET", `/ignored_events/count?connection_id=${other.id}`)).total).toBe(0)
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [] })
    const operation = await create("ignored_events", { connection_id: connection.id, cause: "FILTERED" })
    expect(operation).toMatchObject({ type: "ignored_event_bulk_retry" })
    const after = await ended("ignored_events", operation)
    expect([after.status, ...counts(after)]).toEqual(["COMPLETED", 4, 4, 4, 0])
    await target.next(8)
    const made = await gateway.api("GET", `/requests?batch_operation_id=${after.id}`)
    expect(made.models.map((one) => String(one.retry_parent_request_id)).toSorted()).toEqual(
      ignored.models.map(({ request_id }) => request_id).toSorted()
    )
    await gateway.settled()
    expect(target.received.length).toBe(8)
  })
})

describe("Bulk operation", () => {
  it("A bulk operation on all records must be requested explicitly", async ({ gateway }) => {
    for (const kind of ["events", "requests", "ignored_events"]) {
      for (const filter of [{}, { confirm: false }, { rate: 10 }, { all: false }]) {
        const { body, status } = await gateway.call("POST", `/${kind}/bulk_operations`, filter)
        expect([status, body.code, body.data?.fields[0].path]).toEqual([400, "VALIDATION_ERROR", "all"])
      }
      const { body, status } = await gateway.call("POST", `/${kind}/bulk_operations`, { all: true, confirm: false })
      expect([status, body.filter.from]).toEqual([201, "1970-01-01T00:00:00.000Z"])
      await gateway.call("POST", `/${kind}/bulk_operations/${body.id}/cancel`)
    }
  })

  it("A bulk operation can be cancelled until it ends", async ({ gateway }) => {
    for (const kind of ["requests", "events"] as const) {
      const id = await gateway.heldOperation(kind)
      const list = await gateway.api("GET", `/${kind}/bulk_operations?bucket=ongoing`)
      expect(list.models.map((one) => one.id)).toEqual([id])
      const { body, status } = await gateway.call("POST", `/${kind}/bulk_operations/${id}/cancel`)
      expect(status).toBe(200)
      expect(body).toMatchObject({ id, status: "CANCELLED", cancelable: false, finished_at: expect.any(String) })
      const again = await gateway.call("POST", `/${kind}/bulk_operations/${id}/cancel`)
      expect([again.status, again.body.code]).toEqual([409, "BULK_OPERATION_NOT_CANCELABLE"])
    }
  })

  it("Bulk operations can be listed by their progress", async ({ create, ended, gateway }) => {
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

  it("An invalid bulk operation is refused", async ({ gateway }) => {
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
    // A text that its caller left blank by mistake would narrow nothing, and the rest of the filter find too much.
    for (const name of [
      "q",
      "search",
      "batch_operation_id",
      "bulk_operation_id",
      "retry_kind",
      "status",
      "request_id"
    ]) {
      for (const blank of ["", " "]) {
        const { body, status } = await gateway.call("POST", "/events/bulk_operations", {
          from: "now-1h",
          [name]: blank
        })
        expect([status, body.code, body.data.fields[0].path]).toEqual([400, "VALIDATION_ERROR", name])
      }
    }
    expect(await codeOf("/requests/bulk_operations", { status: "FAILED" })).toEqual([400, "VALIDATION_ERROR"])
    expect(await codeOf("/events/bulk_operations", { from: "now", to: "now-1h" })).toEqual([400, "INVALID_TIME_RANGE"])
    expect(await codeOf("/events/bulk_operations/bch_none")).toEqual([404, "NOT_FOUND"])
    expect(await codeOf("/events/bulk_operations/bch_none/cancel", {})).toEqual([404, "NOT_FOUND"])
    expect(await codeOf("/events/bulk_operations?bucket=none")).toEqual([400, "VALIDATION_ERROR"])
  })
})
