import { request as httpRequest } from "node:http"
import { describe, expect } from "vitest"
import { type Body } from "../support/Gateway.ts"
import { talk } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/** Strangers make a receiver, send to it, read it by its token, and somebody with a team keeps it. */

interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: Body
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Whom the gateway takes it to come from. */
  readonly from?: string
}

let addresses = 0
/** A client that no other test is. */
const stranger = (): string => `127.0.1.${++addresses}`

interface Bin {
  readonly id: string
  readonly endpoint: string
  readonly token: string
  readonly expires_at: string
  readonly ttl_seconds: number
}

const it = gatewayIt
  .extend(
    "call",
    ({ gateway }) =>
      (method: string, path: string, { body, from = "127.0.0.1", headers = {} }: Sent = {}): Promise<Answered> =>
        new Promise((resolve, reject) => {
          const sent = httpRequest(
            `${gateway.origin}${path}`,
            {
              method,
              // A body is framed by its length, whatever the method.
              headers: { connection: "close", "content-length": Buffer.byteLength(body ?? ""), ...headers },
              localAddress: from
            },
            (response) => {
              const pieces: Array<Buffer> = []
              response.on("data", (piece: Buffer) => pieces.push(piece))
              response.on("end", () => {
                const text = Buffer.concat(pieces).toString()
                const isJson = response.headers["content-type"]?.includes("json") === true
                resolve({
                  status: response.statusCode!,
                  headers: response.headers,
                  body: isJson ? JSON.parse(text) : text
                })
              })
              response.on("error", reject)
            }
          )
          sent.on("error", reject)
          sent.end(body)
        })
  )
  .extend("made", ({ call }) => async (): Promise<Bin> => {
    const { body, status } = await call("POST", "/v1/public-bins", { from: stranger() })
    expect(status).toBe(201)
    return body as Bin
  })
  .extend(
    "read",
    ({ call }) =>
      (bin: Bin, more = "", token = bin.token): Promise<Answered> =>
        call("GET", `/v1/public-bins/${bin.id}${more}`, { headers: { "x-bin-token": token }, from: stranger() })
  )
  .extend(
    "claim",
    ({ call, gateway }) =>
      (bin: Bin, token = bin.token): Promise<Answered> =>
        call("POST", `/v1/public-bins/${bin.id}/claim`, {
          headers: { authorization: `Bearer ${gateway.key}`, "x-bin-token": token },
          from: stranger()
        })
  )

const codes = ({ body, status }: Answered) => [status, body.code]

describe("Public bin", () => {
  it("A public bin is created without a credential and accepts requests", async ({ call, gateway, made, read }) => {
    const bin = await made()
    expect(bin).toEqual({
      id: expect.stringMatching(/^src_/),
      endpoint: `${gateway.origin.replace("127.0.0.1", "localhost")}/e/${bin.id}`,
      token: expect.stringMatching(/^pbn_[0-9a-f]{48}$/),
      expires_at: expect.any(String),
      ttl_seconds: 3600
    })
    expect(Math.abs(Date.parse(bin.expires_at) - Date.now() - 3_600_000)).toBeLessThan(60_000)

    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      const { status } = await call(method, `/e/${bin.id}/orders?x=1`, {
        headers: { "content-type": "application/json", authorization: "Bearer the-senders-own" },
        ...(method === "GET" ? {} : { body: `{"by":"${method}"}` })
      })
      expect([method, status]).toEqual([method, 200])
    }
    const answer = await read(bin)
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      id: bin.id,
      endpoint: bin.endpoint,
      expires_at: bin.expires_at,
      next_cursor: null
    })
    expect(answer.body.requests.map((one: Body) => one.data.method)).toEqual(["DELETE", "PATCH", "PUT", "POST", "GET"])
    expect(answer.body.requests[0]).toMatchObject({
      id: expect.stringMatching(/^req_/),
      status: "accepted",
      data: {
        path: "/orders",
        query: "x=1",
        body: { by: "DELETE" },
        headers: { "content-type": "application/json", authorization: "[PRESENTED]" }
      }
    })
    for (const secret of ["tm_bins", "the-senders-own", bin.token]) {
      expect(JSON.stringify(answer.body)).not.toContain(secret)
    }
  })

  it("A public bin can be read only with its token, in its own header or as a bearer token", async ({
    call,
    made,
    read
  }) => {
    const bin = await made()
    const other = await made()
    const path = `/v1/public-bins/${bin.id}`
    const bearing = { authorization: `Bearer ${bin.token}` }
    expect((await call("GET", path, { headers: bearing, from: stranger() })).status).toBe(200)
    expect(codes(await call("GET", path, { from: stranger() }))).toEqual([401, "INVALID_BIN_TOKEN"])
    for (const wrong of [other.token, bin.token.slice(0, -1), bin.token.toUpperCase(), "x"]) {
      expect(codes(await read(bin, "", wrong))).toEqual([401, "INVALID_BIN_TOKEN"])
    }
    expect(codes(await read({ ...bin, id: "src_00000000000000000000000000" }))).toEqual([404, "NOT_FOUND"])
    expect(codes(await read({ ...bin, id: "nothing" }))).toEqual([404, "NOT_FOUND"])
  })

  it("A public bin is not a source of any team", async ({ gateway, made }) => {
    const bin = await made()
    expect((await gateway.call("GET", `/sources/${bin.id}`)).status).toBe(404)
    expect((await gateway.call("DELETE", `/sources/${bin.id}`)).status).toBe(404)
    expect((await gateway.call("GET", `/sources?team_id=tm_bins`)).status).toBe(403)
    const listed = await gateway.call("GET", "/sources?limit=255")
    expect(JSON.stringify(listed.body)).not.toContain(bin.id)
    const destination = await gateway.destination({}, "MOCK_API")
    const relay = { name: gateway.name("relay"), source_id: bin.id, destination_id: destination.id }
    expect((await gateway.call("POST", "/connections", relay)).status).toBe(404)
  })

  it("A public bin can be used by pages of any origin and is not indexed", async ({ call, made, read }) => {
    const openly = {
      "access-control-allow-origin": "*",
      "x-robots-tag": "noindex, nofollow",
      "cache-control": "no-store"
    }
    const bin = await made()
    expect((await read(bin)).headers).toMatchObject(openly)
    expect((await read(bin, "", "wrong")).headers).toMatchObject(openly)
    const preflight = (path: string, method: string) =>
      call("OPTIONS", `/v1${path}`, {
        headers: { origin: "https://page.test", "access-control-request-method": method },
        from: stranger()
      })
    const allowed = await preflight(`/public-bins/${bin.id}`, "GET")
    expect(allowed.status).toBe(204)
    expect(allowed.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET",
      "access-control-allow-headers": expect.stringContaining("x-bin-token")
    })
    expect((await preflight("/public-bins", "POST")).headers).toMatchObject({ "access-control-allow-methods": "POST" })
    for (const [path, method] of [
      [`/public-bins/${bin.id}/claim`, "POST"],
      [`/public-bins/${bin.id}`, "POST"],
      ["/sources", "GET"]
    ] as const) {
      expect((await preflight(path, method)).headers["access-control-allow-origin"], path).toBe(undefined)
    }
  })

  it("The requests of a public bin are listed in pages", async ({ call, made, read }) => {
    const bin = await made()
    const sent: Array<string> = []
    for (let n = 0; n < 5; n++) sent.unshift((await call("POST", `/e/${bin.id}`, { body: `${n}` })).body.request_id)
    const found: Array<string> = []
    let cursor: string | null = ""
    for (let pages = 0; cursor !== null && pages < 5; pages++) {
      const { body } = await read(bin, `?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`)
      found.push(...body.requests.map((one: Body) => one.id))
      cursor = body.next_cursor
      const other = await made()
      if (cursor !== null) expect(codes(await read(other, `?cursor=${cursor}`))).toEqual([400, "INVALID_CURSOR"])
    }
    expect(found).toEqual(sent)
    expect((await read(bin, "?limit=1000")).status).toBe(200)
    expect(codes(await read(bin, "?limit=0"))).toEqual([400, "VALIDATION_ERROR"])
  })

  it("A public bin accepts bodies up to 1 MiB and does not show large ones", async ({ call, made, read }) => {
    const bin = await made()
    expect((await call("POST", `/e/${bin.id}`, { body: "a".repeat(1024 * 1024) })).status).toBe(200)
    const tooLarge = await call("POST", `/e/${bin.id}`, { body: "a".repeat(1024 * 1024 + 1) })
    expect(codes(tooLarge)).toEqual([413, "PAYLOAD_TOO_LARGE"])
    expect(tooLarge.body.message).toContain("1 MiB")
    const { body } = await read(bin)
    expect(body.requests.map((one: Body) => [one.status, one.data.body, one.data.is_large_payload])).toEqual([
      ["rejected", null, true],
      ["accepted", null, true]
    ])
  })

  it("Announced bodies that are not sent use no capacity of a public bin", async ({ gateway, made }) => {
    const bin = await made()
    const { port } = new URL(gateway.origin)
    const { id } = await gateway.source()
    const announced = `POST /e/${bin.id} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2000000000\r\n\r\n`
    const announcing = Array.from({ length: 30 }, () => talk(Number(port), [announced], { answers: 1 }))
    const served = async (): Promise<void> => {
      for (let n = 0; n < 20; n++) {
        expect((await fetch(`${gateway.origin}/e/${id}`, { method: "POST", body: "{}" })).status).toBe(200)
      }
    }
    const [refused] = await Promise.all([Promise.all(announcing), served()])
    expect(new Set(refused.map(({ final }) => final.status))).toEqual(new Set([413]))
  })

  it("A public bin accepts sixty requests a minute and five hundred in total", async ({
    call,
    claim,
    gateway,
    made,
    read
  }) => {
    const bin = await made()
    // Whatever the minute is: sixty were taken in it, and in the next.
    const ahead = `date_trunc('minute', now()) + interval '1 minute'`
    await gateway.sql(`update public_bins set minute = ${ahead}, minute_count = 59 where source_id = $1`, [bin.id])
    const send = () => call("POST", `/e/${bin.id}`, { body: "x" })
    expect((await send()).status).toBe(200)
    const refused = await send()
    expect(codes(refused)).toEqual([429, "RATE_LIMITED"])
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0)
    expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(120)
    expect(codes(await send())).toEqual([429, "RATE_LIMITED"])

    const full = await made()
    await gateway.sql("update public_bins set captured = 499 where source_id = $1", [full.id])
    const outcomes = await Promise.all([1, 2, 3, 4].map(() => call("POST", `/e/${full.id}`, { body: "x" })))
    expect(outcomes.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 429, 429, 429])
    expect((await read(full)).body.requests).toHaveLength(1)
    // Once it is claimed, it is a source like any other.
    expect((await claim(full)).status).toBe(200)
    await gateway.eventually("ingress knows the new state", async () =>
      (await call("POST", `/e/${full.id}`, { body: "x" })).status === 200 ? true : null
    )
  })

  it("An expired public bin answers senders and readers with 410", async ({ call, claim, gateway, made, read }) => {
    const bin = await made()
    expect((await call("POST", `/e/${bin.id}`, { body: "x" })).status).toBe(200)
    const late = await made()
    for (const { id } of [bin, late]) {
      await gateway.sql("update public_bins set expires_at = now() where source_id = $1", [id])
    }
    // Whether or not ingress knows it already.
    for (const { id } of [bin, late]) {
      expect(codes(await call("POST", `/e/${id}`, { body: "y" }))).toEqual([410, "BIN_EXPIRED"])
    }
    expect(codes(await read(bin))).toEqual([410, "BIN_EXPIRED"])
    expect(codes(await claim(bin))).toEqual([410, "BIN_EXPIRED"])
    expect(codes(await read(bin, "", "wrong"))).toEqual([401, "INVALID_BIN_TOKEN"])
    expect(await gateway.requests(bin.id)).toHaveLength(1)
    await gateway.sql("update public_bins set expires_at = now() - interval '1 day' where source_id = $1", [bin.id])
    expect(codes(await read(bin))).toEqual([404, "NOT_FOUND"])
  })

  it("The number of public bins created from one address in an hour is limited", async ({ call }) => {
    const from = stranger()
    for (let n = 0; n < 10; n++) expect((await call("POST", "/v1/public-bins", { from })).status).toBe(201)
    const refused = await call("POST", "/v1/public-bins", { from })
    expect(codes(refused)).toEqual([429, "RATE_LIMITED"])
    expect(refused.body.message).toContain("10 bins made from this address an hour")
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(60)
    expect((await call("POST", "/v1/public-bins", { from: stranger() })).status).toBe(201)
  })

  it("Guessed bin tokens count as wrong credentials, and the right token still works", async ({ call, made }) => {
    const bin = await made()
    const from = stranger()
    const read = (token: string) =>
      call("GET", `/v1/public-bins/${bin.id}`, { headers: { "x-bin-token": token }, from })
    const guesses = await Promise.all(Array.from({ length: 100 }, (_, n) => read(`pbn_${String(n).padStart(48, "0")}`)))
    expect(guesses.filter(({ status }) => status === 401).length).toBeGreaterThanOrEqual(60)
    const refused = guesses.find(({ status }) => status === 429)
    expect(refused?.body.data).toMatchObject({ limit: 60, scope: "address" })
    expect((await read(bin.token)).status).toBe(200)
  })
})

describe("Claimed bin", () => {
  it("A claimed bin is a source of the team with its URL and its requests", async ({
    call,
    claim,
    gateway,
    made,
    read,
    target
  }) => {
    const bin = await made()
    const send = (body: string) =>
      call("POST", `/e/${bin.id}/hook`, { headers: { authorization: "Bearer senders-secret" }, body })
    const first = (await send("first")).body.request_id
    const answer = await claim(bin)
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      claimed: true,
      id: bin.id,
      team_id: "tm_demo",
      source: (await gateway.call("GET", `/sources/${bin.id}`)).body
    })
    expect(answer.body.source).toMatchObject({ name: `bin-${bin.id}`, url: bin.endpoint, status: "enabled" })

    expect(codes(await read(bin))).toEqual([401, "INVALID_BIN_TOKEN"])
    expect(codes(await claim(bin))).toEqual([409, "BIN_ALREADY_CLAIMED"])
    expect(codes(await claim(bin, "pbn_x"))).toEqual([401, "INVALID_BIN_TOKEN"])

    const { body } = await gateway.call("GET", `/requests/${first}`)
    expect(body).toMatchObject({ source_id: bin.id, team_id: "tm_demo", data: { body: "first", path: "/hook" } })
    const health = await gateway.call("GET", `/sources/${bin.id}/health`)
    expect(health.body).toMatchObject({ accepted_24h_count: 1, rate_limit: null })

    // What came before the claim goes, with what its sender presented, where the team sends it.
    const destination = await gateway.destination({ url: target.origin })
    await gateway.connection({ id: bin.id }, destination)
    expect((await gateway.call("POST", `/requests/${first}/retry`)).status).toBe(202)
    await send("second")
    await gateway.eventually("both were delivered", async () => (target.received.length < 2 ? null : true))
    expect(target.received.map(({ body: received }) => received.toString()).toSorted()).toEqual(["first", "second"])
    for (const { headers } of target.received) expect(headers["authorization"]).toBe("Bearer senders-secret")
  })

  it("The claim of a bin needs a member of a team and the bin's token", async ({ call, gateway, made }) => {
    const bin = await made()
    const path = `/v1/public-bins/${bin.id}/claim`
    const from = stranger()
    expect(codes(await call("POST", path, { headers: { "x-bin-token": bin.token }, from }))).toEqual([
      401,
      "UNAUTHENTICATED"
    ])
    const asTeam = { authorization: `Bearer ${gateway.key}` }
    expect(codes(await call("POST", path, { headers: asTeam, from }))).toEqual([401, "INVALID_BIN_TOKEN"])
    const asBins = { ...asTeam, "x-bin-token": bin.token, "x-team-id": "tm_bins" }
    expect(codes(await call("POST", path, { headers: asBins, from }))).toEqual([403, "TEAM_FORBIDDEN"])
  })

  it("A claimed bin has every acknowledged request and no more limits of bins", async ({
    call,
    claim,
    gateway,
    made
  }) => {
    const bin = await made()
    const acknowledged: Array<string> = []
    let isClaimed = false
    const state = { isOver: false }
    const sender = async (): Promise<void> => {
      for (let after = 0; after < 20 && !state.isOver;) {
        const { body, status } = await call("POST", `/e/${bin.id}`, { body: "x" })
        expect([200, 429]).toContain(status)
        if (status === 200) acknowledged.push(body.request_id)
        if (isClaimed && status === 200) after++
      }
    }
    const claimed = async (): Promise<void> => {
      await gateway.eventually("something has come", async () => (acknowledged.length < 8 ? null : true))
      expect((await claim(bin)).status).toBe(200)
      isClaimed = true
    }
    try {
      await Promise.all([...[1, 2, 3, 4].map(sender), claimed()])
    } finally {
      state.isOver = true
    }

    const stored = await gateway.requests(bin.id)
    expect(new Set(stored.map(({ team_id }) => team_id))).toEqual(new Set(["tm_demo"]))
    expect(stored.map(({ id }) => id)).toEqual(acknowledged.toSorted())
    const counts = await gateway.call("GET", `/requests/count?source_id=${bin.id}`)
    expect(counts.body).toMatchObject({ total: acknowledged.length, total_exact: true })
  })
})
