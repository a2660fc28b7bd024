import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** A request is kept as it was, and happens again on one connection whenever somebody says so. */

const it = gatewayIt
  /** A source with two connections to the target, and a request that it has received and delivered. */
  .extend("kept", ({ gateway, target }) => async (headers: ReadonlyArray<[string, string]> = []) => {
    const destination = await gateway.destination({ url: target.origin })
    const source = await gateway.source()
    const first = await gateway.connection(source, destination)
    const second = await gateway.connection(source, destination)
    await request(gateway.port, {
      path: `/e/${source.id}/orders?page=2`,
      headers: [["Content-Type", "application/json"], ...headers],
      body: '{ "id" : 1 }'
    })
    const [stored] = await gateway.requests(source.id)
    await target.next(2)
    target.reset()
    const made = await gateway.call("POST", "/request-fixtures", { request_id: stored.id, name: "order" })
    expect(made.status).toBe(201)
    return { destination, source, first, second, original: stored.id as string, fixture: made.body }
  })

describe("Fixture", () => {
  it("A fixture is a copy of a request, and its name can be changed", async ({ gateway, kept }) => {
    const { fixture, original, source } = await kept()
    expect(fixture).toMatchObject({
      name: "order",
      description: null,
      source_id: source.id,
      source_name: source.name,
      original_request_id: original,
      replay_count: 0,
      last_replayed_at: null,
      snapshot: { method: "POST", path: "/orders", query: "page=2", body: { id: 1 } }
    })
    const at = `/request-fixtures/${fixture.id}`
    expect((await gateway.call("GET", at)).body).toEqual(fixture)
    for (const method of ["PATCH", "PUT"]) {
      expect((await gateway.call(method, at, { name: method, request_id: "req_other" })).status).toBe(400)
      const changed = await gateway.call(method, at, { ...fixture, name: method, original_request_id: "req_other" })
      expect(changed.body).toMatchObject({ name: method, original_request_id: original, snapshot: fixture.snapshot })
    }
    expect((await gateway.call("PATCH", at, { description: "x" })).body).toMatchObject({
      name: "PUT",
      description: "x"
    })
    expect((await gateway.call("PATCH", at, { description: null })).body).toMatchObject({ description: null })
  })

  it("Fixtures are listed by source and by name, newest first", async ({ gateway, kept }) => {
    const { fixture, original, source } = await kept()
    const other = await gateway.call("POST", "/request-fixtures", { request_id: original, name: "Another ORDER" })
    const ids = async (query: string) =>
      (await gateway.call("GET", `/request-fixtures?${query}`)).body.models.map(({ id }: { id: string }) => id)
    expect(await ids(`source_id=${source.id}`)).toEqual([other.body.id, fixture.id])
    expect(await ids(`source_id=${source.id}&limit=1`)).toEqual([other.body.id])
    expect(await ids(`source_id=${source.id}&q=another`)).toEqual([other.body.id])
    expect(await ids("source_id=src_none")).toEqual([])
    expect((await gateway.call("GET", `/request-fixtures?source_id=${source.id}`)).body.models[0]).not.toHaveProperty(
      "snapshot"
    )
  })

  it("A replayed fixture goes unchanged to the chosen connection", async ({ gateway, kept, target }) => {
    const { first, fixture, original, second } = await kept([["Authorization", "Bearer of-the-sender"]])
    const at = `/request-fixtures/${fixture.id}`
    const targets = await gateway.call("GET", `${at}/targets`)
    expect(targets.body.models.map(({ connection_id }: { connection_id: string }) => connection_id)).toEqual([
      first.id,
      second.id
    ])
    const replayed = await gateway.call("POST", `${at}/replay`, { connection_id: second.id })
    expect(replayed).toMatchObject({
      status: 202,
      body: { queued: true, fixture_id: fixture.id, connection_id: second.id }
    })
    expect(replayed.body.message_id).toMatch(/^fxr_[0-9a-f]{20}$/)
    const trace = await gateway.eventually("the delivery", async () => {
      const { body } = await gateway.call("GET", `/requests/${replayed.body.replay_request_id}/trace`)
      return body.events[0]?.status === "SUCCESSFUL" ? body : null
    })
    expect(trace.request).toMatchObject({ is_retry: true, retry_kind: "single", retry_parent_request_id: original })
    expect(trace.events.map((event: { connection_id: string }) => event.connection_id)).toEqual([second.id])
    expect(target.received.length).toBe(1)
    expect(target.received[0]).toMatchObject({ method: "POST", url: "/orders?page=2" })
    expect(target.received[0]!.body.toString()).toBe('{ "id" : 1 }')
    expect(target.received[0]!.headers["authorization"]).toBe("Bearer of-the-sender")
    const { body } = await gateway.call("GET", at)
    expect(body).toMatchObject({ replay_count: 1, last_replayed_at: replayed.body.replayed_at })
  })

  it("A fixture is not replayed to a connection that is not one of its targets", async ({ gateway, kept }) => {
    const { destination, first, fixture, second, source } = await kept()
    const replay = async (connection_id: unknown) => {
      const { body, status } = await gateway.call("POST", `/request-fixtures/${fixture.id}/replay`, { connection_id })
      return [status, body.code]
    }
    const elsewhere = await gateway.connection(await gateway.source(), destination)
    await gateway.call("PUT", `/connections/${first.id}/disable`)
    expect(await replay(elsewhere.id)).toEqual([409, "FIXTURE_TARGET_INVALID"])
    expect(await replay(first.id)).toEqual([409, "FIXTURE_TARGET_INVALID"])
    expect(await replay("web_none")).toEqual([409, "FIXTURE_TARGET_INVALID"])
    expect(await replay(undefined)).toEqual([400, "VALIDATION_ERROR"])
    await gateway.call("PUT", `/sources/${source.id}/disable`)
    expect(await replay(second.id)).toEqual([409, "FIXTURE_TARGET_INVALID"])
  })

  it("An invalid fixture is refused, and a deleted one is not found", async ({ gateway, kept }) => {
    const { fixture, original } = await kept()
    const make = async (body: object) => {
      const answer = await gateway.call("POST", "/request-fixtures", body)
      return [answer.status, answer.body.code]
    }
    expect(await make({ name: "x" })).toEqual([400, "VALIDATION_ERROR"])
    expect(await make({ request_id: original })).toEqual([400, "VALIDATION_ERROR"])
    expect(await make({ request_id: original, name: "x".repeat(121) })).toEqual([400, "VALIDATION_ERROR"])
    expect(await make({ request_id: original, name: "x", description: "x".repeat(501) })).toEqual([
      400,
      "VALIDATION_ERROR"
    ])
    expect(await make({ request_id: "req_none", name: "x" })).toEqual([404, "NOT_FOUND"])
    const at = `/request-fixtures/${fixture.id}`
    expect(await gateway.call("DELETE", at)).toEqual({ status: 200, body: { id: fixture.id, deleted: true } })
    expect((await gateway.call("DELETE", at)).status).toBe(404)
    expect((await gateway.call("GET", `${at}/targets`)).status).toBe(404)
    expect((await gateway.call("PATCH", at, { name: "x" })).status).toBe(404)
    expect((await gateway.call("GET", `/requests/${original}`)).status).toBe(200)
  })
})
