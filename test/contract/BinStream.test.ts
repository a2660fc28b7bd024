import { randomBytes } from "node:crypto"
import { createConnection } from "node:net"
import { WebSocket } from "@effect/platform-node/NodeWS"
import { describe, expect } from "vitest"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Body, Gateway } from "../support/Gateway.ts"
import { newId } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { binsTeam } from "@tidegate/storage/teams/Teams"
import { ownIt as gatewayIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"

/**
 * `GET /bins/{id}/stream`: who may open it, what it sends, when it ends, and what strangers cannot do with it. How soon a
 * request is sent is not asserted: the tests wait for it.
 */

const base64url = (text: string): string => Buffer.from(text).toString("base64url")
const token = (value: string): string => `token.${base64url(value)}`
const team = (value: string): string => `team.${base64url(value)}`

/** A reader with everything that it received. */
class Reader {
  readonly frames: Array<Body> = []
  readonly socket: WebSocket
  closed: { readonly code: number; readonly reason: string } | null = null
  refused: number | null = null

  constructor(url: string, protocols: ReadonlyArray<string>, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(url, [...protocols], { headers })
    this.socket.on("message", (data: Buffer) => this.frames.push(JSON.parse(data.toString())))
    this.socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() }
    })
    this.socket.on("unexpected-response", (_, response) => {
      this.refused = response.statusCode ?? 0
      response.resume()
      this.socket.terminate()
    })
    this.socket.on("error", () => {})
  }

  greeted(): Promise<Body> {
    return eventually("a greeting", () => this.frames[0])
  }

  received(id: string): Promise<Body> {
    return eventually(`${id} is received`, () => this.frames.find(({ request }) => request?.id === id))
  }

  ended(): Promise<{ readonly code: number; readonly reason: string }> {
    return eventually("the end of the stream", () => this.closed)
  }
}

const it = gatewayIt
  .extend("watch", ({ gateway }, { onCleanup }) => {
    const readers: Array<Reader> = []
    onCleanup(() => {
      for (const { socket } of readers) socket.terminate()
    })
    return (
      id: string,
      protocols: ReadonlyArray<string>,
      headers?: Record<string, string>,
      origin = gateway.origin
    ) => {
      const url = `${origin.replace("http", "ws")}/v1/bins/${id}/stream`
      const reader = new Reader(url, protocols, headers)
      readers.push(reader)
      return reader
    }
  })
  .extend("send", ({ gateway }) => async (id: string, body = "{}", path = ""): Promise<string> => {
    const headers = { "content-type": "application/json" }
    const answer = await fetch(`${gateway.origin}/e/${id}${path}`, { method: "POST", headers, body })
    return ((await answer.json()) as Body).request_id
  })

const streams = it.extend("bin", ({ gateway }) => async (endsInMs = 3_600_000) => {
  const [id, value] = [newId("src_", Date.now()), `pbn_${randomBytes(24).toString("hex")}`]
  await gateway.sql(
    `with source as (
      insert into sources (id, team_id, name, type, config, created_at, updated_at)
      select $1, $2, $1, type, config, now(), now() from sources where id = $3 returning id
    ) insert into public_bins (source_id, team_id, token_hash, minute, expires_at, created_at)
      select id, $2, $4, now(), now() + $5::int * interval '1 ms', now() from source`,
    [id, binsTeam, (await gateway.source()).id, hashToken(value), endsInMs]
  )
  return { id, token: value }
})

const nobody = "src_00000000000000000000000000"

describe("Handshake of a bin stream", () => {
  it("A call without an upgrade is answered with 426, with or without a credential", async ({ gateway }) => {
    for (const headers of [{}, { authorization: `Bearer ${gateway.key}` }]) {
      for (const path of [`/v1/bins/${nobody}/stream`, `/bins/${nobody}/stream`]) {
        const answer = await fetch(gateway.origin + path, { headers })
        expect([answer.status, answer.headers.get("upgrade")]).toEqual([426, "websocket"])
        expect(await answer.json()).toMatchObject({ code: "UPGRADE_REQUIRED", status: 426 })
      }
    }
  })

  it("The handshake answers with the protocol or else the team, and never with the token", async ({
    gateway,
    watch
  }) => {
    const { id } = await gateway.source()
    const demo = team("tm_demo")
    for (const [offered, answered] of [
      [["bin.v1", token(gateway.key)], "bin.v1"],
      [[token(gateway.key), demo, "bin.v1"], "bin.v1"],
      [[token(gateway.key), demo], demo],
      [[team(gateway.key), "bin.v1"], "bin.v1"]
    ] as const) {
      const reader = watch(id, offered)
      expect(await reader.greeted()).toEqual({ type: "hello", bin_id: id })
      expect(reader.socket.protocol).toBe(answered)
    }
    const alone = watch(id, [token(gateway.key)])
    await alone.ended()
    expect(alone.socket.protocol).toBe("")
  })

  it("A stream accepts headers, keys and sessions of the team", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const session = await gateway.session("member")
    for (const reader of [
      watch(id, [], { authorization: `Bearer ${gateway.key}` }),
      watch(id, [], { authorization: `Bearer ${session}`, "x-team-id": "tm_demo" }),
      watch(id, ["bin.v1", token(session), team("tm_demo")]),
      watch(id, ["bin.v1", team(session)], { origin: "https://elsewhere.test" })
    ]) {
      expect(await reader.greeted()).toEqual({ type: "hello", bin_id: id })
    }
  })

  it("The close code of a refused stream states the reason", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const gone = await gateway.source()
    await gateway.call("DELETE", `/sources/${gone.id}`)
    const stranger = await gateway.session(null)
    for (const [name, reader, code] of [
      ["none", watch(id, ["bin.v1"]), 4401],
      ["an unknown key", watch(id, ["bin.v1", token("gwk_nobodys_key_at_all")]), 4401],
      ["a session that is over", watch(id, ["bin.v1", token(`ses_${"0".repeat(64)}`)]), 4401],
      ["another team", watch(id, ["bin.v1", token(gateway.key), team("tm_other")]), 4403],
      ["no member", watch(id, ["bin.v1", team(stranger)]), 4403],
      ["no source", watch(nobody, ["bin.v1", team(gateway.key)]), 4404],
      ["no id", watch("elephant", ["bin.v1", team(gateway.key)]), 4404],
      ["a deleted one", watch(gone.id, ["bin.v1", team(gateway.key)]), 4404],
      ["a token of no bin", watch(id, ["bin.v1", token(`pbn_${"0".repeat(48)}`)]), 4404]
    ] as const) {
      const ended = await reader.ended()
      expect([name, ended.code]).toEqual([name, code])
      expect(reader.frames).toEqual([])
    }
  })

  it("A malformed handshake is answered like any other invalid call", async ({ gateway }) => {
    const headers = { upgrade: "websocket", connection: "upgrade" }
    const key = randomBytes(16).toString("base64")
    for (const [more, status, code] of [
      [{}, 426, "UPGRADE_REQUIRED"],
      [{ upgrade: "h2c" }, 426, "UPGRADE_REQUIRED"],
      [{ "sec-websocket-version": "8", "sec-websocket-key": key }, 426, "UPGRADE_REQUIRED"],
      [{ "sec-websocket-version": "13", "sec-websocket-key": "short" }, 400, "VALIDATION_ERROR"],
      [
        { "sec-websocket-version": "13", "sec-websocket-key": key, "sec-websocket-protocol": "a,,b" },
        400,
        "VALIDATION_ERROR"
      ],
      [{ "sec-websocket-version": "13", "sec-websocket-key": key, "content-length": "5" }, 400, "VALIDATION_ERROR"]
    ] as const) {
      const answer = await upgradeBy(gateway.port, { ...headers, ...more })
      expect(answer, JSON.stringify(more)).toContain(`HTTP/1.1 ${status} `)
      expect(answer).toContain(code)
    }
  })
})

/** How many streams the gateway says are open. */
const openStreams = async (gateway: Gateway): Promise<number> => {
  const answer = await fetch(`${gateway.origin}/metrics`, { headers: { authorization: `Bearer ${gateway.key}` } })
  return sampleValue(parseExposition(await answer.text()), "tidegate_streams_open") ?? 0
}

/** What is answered to a handshake with just these headers. */
const upgradeBy = (port: number, headers: Record<string, string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = createConnection(port, "127.0.0.1")
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    let answer = ""
    socket.on("data", (data) => {
      answer += data.toString()
    })
    socket.on("error", reject)
    socket.on("close", () => resolve(answer))
    socket.write(`GET /v1/bins/${nobody}/stream HTTP/1.1\r\nhost: gateway\r\n${lines.join("")}\r\n`)
  })

describe("Bin stream", () => {
  it("A stream sends every stored request once, as the list shows it, accepted or rejected", async ({
    gateway,
    send,
    watch
  }) => {
    const { id } = await gateway.source({ allowed_http_methods: ["POST"] })
    const before = await send(id)
    const reader = watch(id, ["bin.v1", team(gateway.key)])
    await reader.greeted()

    const sent = await send(id, '{"order":1}', "/orders?page=2")
    const received = await reader.received(sent)
    expect(received).toMatchObject({
      type: "request",
      request: {
        id: sent,
        status: "accepted",
        data: { method: "POST", path: "/orders", query: "page=2", body: { order: 1 } }
      }
    })
    await fetch(`${gateway.origin}/e/${id}`, { method: "DELETE" })
    const rejected = await eventually("the rejected one", () =>
      reader.frames.find(({ request }) => request?.status === "rejected")
    )
    expect(rejected.request.data.method).toBe("DELETE")

    const many: Array<string> = []
    for (let i = 0; i < 40; i++) many.push(await send(id, String(i)))
    for (const one of many) await reader.received(one)
    const ids = reader.frames.flatMap(({ request }) => (request === undefined ? [] : [request.id]))
    expect(new Set(ids)).toEqual(new Set([sent, rejected.request.id, ...many]))
    expect(ids).toHaveLength(many.length + 2)
    expect(ids).not.toContain(before)
  })

  it("A stream loses no request between its greeting and the list that is read after it", async ({
    gateway,
    send,
    watch
  }) => {
    const { id } = await gateway.source()
    const sending = Promise.all(
      Array.from({ length: 60 }, async (_, place) => {
        for (let i = 0; i < place; i++) await new Promise((go) => setImmediate(go))
        return send(id)
      })
    )
    const reader = watch(id, ["bin.v1", team(gateway.key)])
    const list = async () => {
      await reader.greeted()
      return gateway.api("GET", `/requests?source_id=${id}&limit=100` as "/requests")
    }
    const [sent, listed] = await Promise.all([sending, list()])
    const known = new Set<string>(listed.models.map(({ id }) => id))
    for (const one of sent) if (!known.has(one)) await reader.received(one)
    const received = reader.frames.flatMap(({ request }) => (request === undefined ? [] : [request.id]))
    expect(new Set(received).size).toBe(received.length)
  })

  it("A stream shows no more of a body than a list", async ({ gateway, send, watch }) => {
    const { id } = await gateway.source()
    const reader = watch(id, ["bin.v1", team(gateway.key)])
    await reader.greeted()
    const { request } = await reader.received(await send(id, JSON.stringify("x".repeat(200_000))))
    expect(request.data).toMatchObject({ body: null, is_large_payload: true, size_bytes: 200_002 })
  })

  it("A stream ends with 4410 when its source is deleted", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const reader = watch(id, ["bin.v1", team(gateway.key)])
    await reader.greeted()
    await gateway.api("DELETE", `/sources/${id}` as "/sources/{id}")
    expect(await reader.ended()).toEqual({ code: 4410, reason: "BIN_EXPIRED" })
  })
})

describe("Public bin", () => {
  streams("A public bin's stream opens with the bin's token and with no other", async ({ bin, send, watch }) => {
    const [mine, other] = [await bin(), await bin()]
    const readers = [
      watch(mine.id, ["bin.v1", token(mine.token)]),
      watch(mine.id, [], { "x-bin-token": mine.token }),
      watch(mine.id, [], { authorization: `Bearer ${mine.token}` })
    ]
    for (const reader of readers) await reader.greeted()
    expect(readers[0]!.socket.protocol).toBe("bin.v1")
    const sent = await send(mine.id)
    for (const reader of readers) expect((await reader.received(sent)).request.status).toBe("accepted")
    expect((await watch(mine.id, ["bin.v1", token(other.token)]).ended()).code).toBe(4401)
    expect((await watch(other.id, ["bin.v1", token(mine.token)]).ended()).code).toBe(4401)
    expect((await watch(nobody, ["bin.v1", token(mine.token)]).ended()).code).toBe(4404)
  })

  streams("A team's key opens the stream of a bin only after its claim", async ({ bin, gateway, send, watch }) => {
    const { id, token: value } = await bin()
    expect((await watch(id, ["bin.v1", team(gateway.key)]).ended()).code).toBe(4403)
    const byToken = watch(id, ["bin.v1", token(value)])
    await byToken.greeted()

    await gateway.sql("update public_bins set team_id = $2, claimed_at = now() where source_id = $1", [id, "tm_demo"])
    await gateway.sql("update sources set team_id = $2, version = version + 1 where id = $1", [id, "tm_demo"])
    expect((await byToken.ended()).code).toBe(4410)
    expect((await watch(id, ["bin.v1", token(value)]).ended()).code).toBe(4401)

    // The dead token beside the credential does no harm.
    const byBoth = watch(id, [token(value), team(gateway.key)])
    await byBoth.greeted()
    expect(byBoth.socket.protocol).toBe(team(gateway.key))
    await byBoth.received(await send(id))
  })

  streams("A public bin's stream closes with 4410 when the bin expires, and later at once", async ({ bin, watch }) => {
    const { id, token: value } = await bin(3_000)
    const reader = watch(id, ["bin.v1", token(value)])
    expect(await reader.ended()).toEqual({ code: 4410, reason: "BIN_EXPIRED" })
    expect((await watch(id, ["bin.v1", token(value)]).ended()).code).toBe(4410)
  })
})

describe("Reader of a stream", () => {
  it("A reader that sends messages is disconnected", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const talking = watch(id, ["bin.v1", team(gateway.key)])
    await talking.greeted()
    talking.socket.send("hello?")
    expect((await talking.ended()).code).toBe(1008)

    const large = watch(id, ["bin.v1", team(gateway.key)])
    await large.greeted()
    large.socket.send("x".repeat(5_000))
    expect((await large.ended()).code).toBe(1009)

    const pinging = watch(id, ["bin.v1", team(gateway.key)])
    await pinging.greeted()
    for (let i = 0; i < 100; i++) pinging.socket.ping()
    expect((await pinging.ended()).code).toBe(1006)
  })

  it("A reader that does not read is disconnected and does not delay others", async ({ gateway, send, watch }) => {
    const { id } = await gateway.source()
    const deaf = watch(id, ["bin.v1", team(gateway.key)])
    const listening = watch(id, ["bin.v1", team(gateway.key)])
    await Promise.all([deaf.greeted(), listening.greeted()])
    deaf.socket.pause()
    let [count, last] = [0, ""]
    // What the system keeps for a connection comes before what the gateway would keep.
    const body = JSON.stringify("x".repeat(60_000))
    await eventually("one stream is open", async () => {
      last = await send(id, body)
      count++
      return (await openStreams(gateway)) === 1 ? true : null
    })
    expect(count * body.length).toBeLessThan(64 * 1024 * 1024)
    await listening.received(last)
    expect(listening.closed).toBeNull()
    deaf.socket.resume()
    expect((await deaf.ended()).code).toBe(1006)
    expect(deaf.frames.length).toBeLessThan(listening.frames.length)
  })

  it("The number of readers of a source is limited", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const readers = Array.from({ length: 40 }, () => watch(id, ["bin.v1", team(gateway.key)]))
    await eventually("all are answered", () =>
      readers.every(({ frames, refused }) => frames.length > 0 || refused !== null) ? true : null
    )
    expect(readers.filter(({ refused }) => refused === 429)).toHaveLength(8)
    expect(readers.filter(({ frames }) => frames.length === 1)).toHaveLength(32)
  })

  it("A stream never sends compressed messages", async ({ gateway, watch }) => {
    const { id } = await gateway.source()
    const reader = watch(id, ["bin.v1", team(gateway.key)])
    await reader.greeted()
    expect(reader.socket.extensions).toBe("")
  })
})
