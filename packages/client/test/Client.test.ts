import { describe, expect, it } from "vitest"
import { Client } from "../src/Client.ts"
import { retryAfter } from "../src/Retry.ts"
import { TidegateError } from "../src/TidegateError.ts"

type Reply = Response | Error
type Told = { readonly method: string; readonly url: string; readonly body: string }

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })
const busy = (status: number, after = "0"): Response =>
  json(status, { error: "x", code: "RATE_LIMITED", status, message: "later" }, { "retry-after": after })
const gone = new TypeError("fetch failed")

/** A client whose gateway answers these one after the other, and what it has been asked. */
const talk = (replies: ReadonlyArray<Reply>, options: { readonly retries?: number } = {}) => {
  const told: Array<Told> = []
  const fetch = async (request: Request): Promise<Response> => {
    request.signal.throwIfAborted()
    const { pathname, search } = new URL(request.url)
    told.push({ method: request.method, url: pathname + search, body: await request.text() })
    const reply = replies[told.length - 1] ?? gone
    if (reply instanceof Error) throw reply
    return reply
  }
  return {
    client: new Client({ baseUrl: "http://gateway/", key: "gwk_x", fetch, longestWaitMs: 1_000, ...options }),
    told
  }
}

describe("Client call", () => {
  it("Client repeats a safe call with the same body until it succeeds", async () => {
    const { client, told } = talk([busy(429), busy(503), gone, json(200, { id: "src_1" })])
    expect(await client.put("/sources", { body: { name: "shop" } })).toEqual({ id: "src_1" })
    const put = { method: "PUT", url: "/v1/sources", body: '{"name":"shop"}' }
    expect(told).toEqual([put, put, put, put])
  })

  it.each<[string, Reply, number]>([
    ["no answer to a create", gone, 1],
    ["a create that may have been done", busy(503), 1],
    ["a create that was not begun", busy(429), 4]
  ])("Client repeats a create only as often as is safe: %s", async (_, reply, times) => {
    const { client, told } = talk(Array.from({ length: 9 }, () => (reply instanceof Error ? reply : reply.clone())))
    await expect(client.post("/sources", { body: { name: "shop" } })).rejects.toThrow()
    expect(told.length).toBe(times)
  })

  it("Client repeats a change of its own key only when nothing was changed", async () => {
    const body = { api_key: "gwk_another_key" }
    const lost = talk([gone, json(200, {})])
    await expect(lost.client.put("/project-secrets", { body })).rejects.toThrow("fetch failed")
    const later = talk([busy(503), json(200, {})])
    await expect(later.client.put("/project-secrets", { body })).rejects.toMatchObject({ status: 503 })
    const limited = talk([busy(429), json(200, {})])
    expect(await limited.client.put("/project-secrets", { body })).toEqual({})
    expect([lost, later, limited].map(({ told }) => told.length)).toEqual([1, 1, 2])
  })

  it("Client does not repeat a permanent failure, a call with a long wait or a call without retries", async () => {
    const refused = talk([json(404, { error: "Not found", code: "NOT_FOUND", status: 404, message: "no" })])
    await expect(refused.client.get("/sources")).rejects.toMatchObject({
      status: 404,
      code: "NOT_FOUND",
      message: "no"
    })
    const late = talk([busy(429, "2")])
    await expect(late.client.get("/sources")).rejects.toMatchObject({ status: 429 })
    const never = talk([busy(429)], { retries: 0 })
    await expect(never.client.get("/sources")).rejects.toBeInstanceOf(TidegateError)
    const ended = talk([])
    await expect(ended.client.get("/sources", { signal: AbortSignal.abort() })).rejects.toThrow("abort")
    expect([refused, late, never].map(({ told }) => told.length)).toEqual([1, 1, 1])
    expect(ended.told).toEqual([])
  })

  it("Client error has the status, code, message, data and id of the failure", async () => {
    const body = { error: "Internal", code: "INTERNAL_ERROR", status: 500, message: "sorry", data: { a: 1 } }
    const { client } = talk([json(500, body, { "x-error-id": "err_1" }), new Response("<html>", { status: 400 })])
    await expect(client.get("/sources")).rejects.toMatchObject({
      name: "TidegateError",
      status: 500,
      code: "INTERNAL_ERROR",
      message: "sorry",
      data: { a: 1 },
      requestId: "err_1"
    })
    await expect(client.get("/sources")).rejects.toMatchObject({
      status: 400,
      code: "UNKNOWN",
      data: {},
      requestId: null
    })
  })
})

describe("Client list", () => {
  const page = (models: ReadonlyArray<object>, next_cursor: string | null) =>
    json(200, { models, next_cursor, has_more: next_cursor !== null })

  it("Client list follows next_cursor with the same filters and only as far as it is read", async () => {
    const { client, told } = talk([
      page([{ id: 1 }, { id: 2 }], "a b"),
      page([], "c"),
      page([{ id: 3 }], null),
      page([{ id: 4 }], "d")
    ])
    const query = { status: ["FAILED" as const, "HOLD" as const] }
    const found = await Array.fromAsync(client.list("/events", { params: { query } }))
    expect(found).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }])
    for await (const attempt of client.list("/attempts")) {
      expect(attempt).toEqual({ id: 4 })
      break
    }
    const filters = "/v1/events?status=FAILED&status=HOLD"
    expect(told.map(({ url }) => url)).toEqual([
      filters,
      `${filters}&cursor=a%20b`,
      `${filters}&cursor=c`,
      "/v1/attempts"
    ])
  })

  it("Client list of a resource keeps its path and its page size", async () => {
    const { client, told } = talk([page([{ id: 1 }], "n"), page([{ id: 2 }], null)])
    const params = { path: { id: "req_1" }, query: { limit: 1 } }
    expect(await Array.fromAsync(client.list("/requests/{id}/events", { params }))).toEqual([{ id: 1 }, { id: 2 }])
    expect(told.map(({ url }) => url)).toEqual([
      "/v1/requests/req_1/events?limit=1",
      "/v1/requests/req_1/events?limit=1&cursor=n"
    ])
  })

  it("Client list ends when has_more is false, even if there is a cursor", async () => {
    const { client } = talk([json(200, { models: [{ id: 1 }], next_cursor: "n", has_more: false })])
    expect(await Array.fromAsync(client.list("/events", { params: { query: { after: "c" } } }))).toEqual([{ id: 1 }])
  })
})

it("Header Retry-After is read as seconds or as a date", () => {
  const now = Date.parse("2026-01-01T00:00:00Z")
  const headers = ["3", "Thu, 01 Jan 2026 00:00:05 GMT", "Wed, 31 Dec 2025 00:00:05 GMT", "soon", null]
  expect(headers.map((header) => retryAfter(header, now))).toEqual([3_000, 5_000, 0, null, null])
})

it("Client error as text has its code, status and message", () => {
  const error = new TidegateError(json(404, {}), { code: "NOT_FOUND", message: "source src_1 was not found" })
  expect(String(error)).toBe("TidegateError: NOT_FOUND (404): source src_1 was not found")
})
