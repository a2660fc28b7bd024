import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import type { Received } from "../support/Target.ts"

/** A request that is made to happen again: contract 6.4. */

const json = ["content-type", "application/json"] as const

interface Sent {
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string | Buffer
}

const it = gatewayIt
  /** Sends; the request's id. */
  .extend(
    "send",
    ({ gateway }) =>
      async (source: Source, { body = `{"id":1}`, headers = [json], suffix = "" }: Sent = {}): Promise<string> => {
        const answer = await request(gateway.port, { headers, path: `/e/${source.id}${suffix}`, body })
        return answer.status === 200
          ? String(JSON.parse(answer.body).request_id)
          : String((await gateway.requests(source.id)).at(-1).id)
      }
  )
  /** Replays; the answer, and what the target got. */
  .extend("replay", ({ gateway, target }) => async (id: string, edits?: object) => {
    const before = target.received.length
    const { body, status } = await gateway.call("POST", `/requests/${id}/retry`, edits)
    expect(status).toBe(202)
    await target.next(before + 1)
    return { answer: body, received: target.received.at(-1)! }
  })

const partsOf = ({ body, headers, method, url }: Received) => ({
  method,
  url,
  body: body.toString(),
  type: headers["content-type"],
  extra: headers["x-extra"]
})

describe("Replay of a request", () => {
  it("A replay is a new request of the source with the same content", async ({ gateway, replay, send, target }) => {
    const { connection, source } = await gateway.route(target)
    const id = await send(source, {
      suffix: "/orders?a=1",
      headers: [json, ["x-extra", "1"], ["x-request-id", "own-1"]]
    })
    await target.next(1)
    const { answer, received } = await replay(id)
    expect(answer).toEqual({
      ok: true,
      queued: true,
      transport: "queue",
      replayed_at: expect.any(String),
      request_id: id,
      replay_request_id: expect.stringMatching(/^req_/),
      source_id: source.id,
      replay_message_id: answer.replay_request_id.replace("req_", "rpl_"),
      replay_mode: "exact",
      original_rejection_cause: null
    })
    expect(partsOf(received)).toEqual(partsOf(target.received[0]!))
    const trace = await gateway.traced(answer.replay_request_id)
    expect(trace.request).toMatchObject({
      status: "accepted",
      is_retry: true,
      retry_kind: "single",
      retry_parent_request_id: id,
      retry_operation_id: null,
      retried_at: answer.replayed_at,
      external_id: "own-1",
      events_count: 1
    })
    expect(trace.events[0]).toMatchObject({ connection_id: connection.id, is_retry: false })
    const list = await gateway.api("GET", `/requests?is_retry=true&source_id=${source.id}`)
    expect(list.models.map((one: { id: string }) => one.id)).toEqual([answer.replay_request_id])
  })

  const original = { method: "POST", url: "/orders?a=1", body: `{"id":1}`, type: "application/json", extra: "1" }
  for (const [what, edits, expected] of [
    ["method", { method: "PUT" }, { method: "PUT" }],
    ["path", { path: "/returns" }, { url: "/returns?a=1" }],
    ["query as a text", { query: "?b=2" }, { url: "/orders?b=2" }],
    ["query as an object", { query: { b: ["2", 3], c: null } }, { url: "/orders?b=2&b=3&c=" }],
    ["empty query", { query: "" }, { url: "/orders" }],
    ["header", { headers: { "X-Extra": "2" } }, { extra: "2" }],
    ["removed header", { headers: { "x-extra": null } }, { extra: undefined }],
    ["body as JSON", { body: { id: 2 } }, { body: `{"id":2}` }],
    ["body as a text", { body: "plain" }, { body: "plain" }],
    ["empty body", { body: "" }, { body: "" }],
    [
      "everything",
      {
        modifications: { method: "PATCH", path: "/x", query: "y", headers: { "content-type": "text/plain" }, body: "z" }
      },
      { method: "PATCH", url: "/x?y", type: "text/plain", body: "z" }
    ]
  ] as const) {
    it(`A replay changes exactly what is edited: ${what}`, async ({ gateway, replay, send, target }) => {
      const { source } = await gateway.route(target, { destination: { http_method: null } })
      const id = await send(source, { suffix: "/orders?a=1", headers: [json, ["x-extra", "1"]] })
      await target.next(1)
      const { answer, received } = await replay(id, edits)
      expect(answer.replay_mode).toBe("modified")
      expect(partsOf(received)).toEqual({ ...original, ...expected })
      expect(await gateway.api("GET", `/requests/${answer.replay_request_id}`)).toMatchObject({ verified: false })
    })
  }

  it("A replayed form becomes JSON when its new body is JSON", async ({ gateway, replay, send, target }) => {
    const { source } = await gateway.route(target)
    const id = await send(source, { headers: [["content-type", "application/x-www-form-urlencoded"]], body: "a=1" })
    await target.next(1)
    const { received } = await replay(id, { body: { a: 1 } })
    expect(partsOf(received)).toMatchObject({ body: `{"a":1}`, type: "application/json" })
  })

  it("A replay of binary data has the same bytes", async ({ gateway, replay, send, target }) => {
    const { source } = await gateway.route(target)
    const body = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const id = await send(source, { headers: [["content-type", "application/octet-stream"]], body })
    await target.next(1)
    expect((await replay(id)).received.body.equals(body)).toBe(true)
  })

  it("A replay goes through the current rules and is not a duplicate", async ({ gateway, replay, send, target }) => {
    const { connection, source } = await gateway.route(target, { rules: [{ type: "deduplicate", window: 3_600_000 }] })
    const id = await send(source)
    await target.next(1)
    await replay(id)
    await gateway.api("PATCH", `/connections/${connection.id}`, {
      rules: [{ type: "filter", body: { id: { $eq: 2 } } }]
    })
    const { body } = await gateway.call("POST", `/requests/${id}/retry`)
    const trace = await gateway.traced(body.replay_request_id)
    expect(trace.ignored_events.map(({ cause }) => cause)).toEqual(["FILTERED"])
    await replay(id, { body: { id: 2 } })
  })

  it("A replay goes only to the given connections", async ({ gateway, replay, send, target }) => {
    const { destination, source } = await gateway.route(target)
    const second = await gateway.connection(source, destination)
    const id = await send(source)
    await target.next(2)
    const { answer } = await replay(id, { connection_ids: [second.id] })
    expect(answer.replay_mode).toBe("exact")
    const trace = await gateway.traced(answer.replay_request_id)
    expect(trace.events.map(({ connection_id }) => connection_id)).toEqual([second.id])
    await gateway.api("PUT", `/connections/${second.id}/disable`)
    const refused = await gateway.call("POST", `/requests/${id}/retry`, { connection_ids: [second.id] })
    expect([refused.status, refused.body.code]).toEqual([409, "CONNECTION_DISABLED"])
  })

  it("A replay accepts a rejected request and forwards the credential of the original", async ({
    gateway,
    replay,
    send,
    target
  }) => {
    const config = { auth_type: "API_KEY", auth: { header_key: "x-api-key", api_key: "right-secret" } } as const
    const { source } = await gateway.route(target, { source: config, destination: { forward_credentials: true } })
    const wrong = await send(source, { headers: [json, ["x-api-key", "wrong-secret"]] })
    const first = await replay(wrong)
    expect(first.answer.original_rejection_cause).toBe("SOURCE_AUTH_FAILED")
    expect(first.received.headers["x-api-key"]).toBe("wrong-secret")
    const right = await send(source, { headers: [json, ["x-api-key", "right-secret"]] })
    const second = await replay(right)
    expect(second.received.headers["x-api-key"]).toBe("right-secret")
    const read = await gateway.api("GET", `/requests/${second.answer.replay_request_id}`)
    expect(read).toMatchObject({ verified: true, data: { headers: { "x-api-key": "[PRESENTED]" } } })
  })

  it("Replays keep the order of an ordered connection", async ({ gateway, send, target }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    await gateway.connection(source, destination, [], { ordering: { key: "body.key", on_failure: "block" } })
    const ids: Array<string> = []
    for (let n = 0; n < 10; n++) ids.push(await send(source, { body: JSON.stringify({ key: "a", n }) }))
    await target.next(10)
    for (const id of ids) expect((await gateway.call("POST", `/requests/${id}/retry`)).status).toBe(202)
    await target.next(20)
    expect(target.received.map(({ body }) => JSON.parse(body.toString()).n)).toEqual([...ids.keys(), ...ids.keys()])
  })

  it("An invalid replay is refused", async ({ gateway, send, target }) => {
    const { source } = await gateway.route(target)
    const id = await send(source)
    const codeOf = async (path: string, edits?: object) => {
      const { body, status } = await gateway.call("POST", path, edits)
      return [status, body.code]
    }
    expect(await codeOf("/requests/req_none/retry")).toEqual([404, "NOT_FOUND"])
    for (const edits of [
      { method: "CONNECT" },
      { path: "orders" },
      { path: `/${"x".repeat(2048)}` },
      { path: "/a b" },
      { query: "a b" },
      { query: 1 },
      { headers: { "a b": "1" } },
      { headers: { a: "1\r\nb: 2" } },
      { headers: { a: 1 } },
      { connection_ids: [] },
      { connection_ids: "web_1" }
    ]) {
      expect([edits, ...(await codeOf(`/requests/${id}/retry`, edits))]).toEqual([edits, 400, "VALIDATION_ERROR"])
    }
    const large = { body: "x".repeat(10 * 1024 * 1024 + 1) }
    expect(await codeOf(`/requests/${id}/retry`, large)).toEqual([413, "PAYLOAD_TOO_LARGE"])
    await gateway.sql("update requests set body = null where id = $1", [id])
    expect(await codeOf(`/requests/${id}/retry`)).toEqual([409, "PAYLOAD_UNAVAILABLE"])
    const other = await send(source)
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    expect(await codeOf(`/requests/${other}/retry`)).toEqual([409, "SOURCE_DISABLED"])
  })
})
