import { describe, expect } from "vitest"
import { newId } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import type { DestinationConfig, Rules } from "../support/Contract.ts"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Body, Gateway } from "../support/Gateway.ts"
import { ownIt as gatewayIt } from "../support/it.ts"
import { type Reply, TunnelClient } from "../support/TunnelClient.ts"
import { eventually } from "../support/Waiting.ts"

/**
 * `GET /connect` and destinations of type CLI: who may hold a tunnel open, what is sent through it and what becomes of what is answered, and
 * what happens to events while nobody is there. `docs/tunnel.md` is what is held to here.
 */

const base64url = (text: string): string => Buffer.from(text).toString("base64url")

type Options = NonNullable<ConstructorParameters<typeof TunnelClient>[2]>

const it = gatewayIt
  .extend("connect", ({ gateway }, { onCleanup }) => {
    const clients: Array<TunnelClient> = []
    onCleanup(() => {
      for (const client of clients) client.drop()
    })
    return (destination: string, options: Options = {}) => {
      const client = new TunnelClient(gateway.origin, destination, { key: gateway.key, ...options })
      clients.push(client)
      return client
    }
  })
  .extend("routed", ({ gateway }) => async (config: DestinationConfig = {}, rules: Rules = []) => {
    const source = await gateway.source()
    const destination = await gateway.destination(config, "CLI")
    const connection = await gateway.connection(source, destination, rules)
    return { source, destination, connection }
  })
  .extend("send", ({ gateway }) => async (source: string, body: string | Buffer = "{}", path = ""): Promise<string> => {
    const answer = await fetch(`${gateway.origin}/e/${source}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-of-the-sender": "yes" },
      body: typeof body === "string" ? body : new Uint8Array(body)
    })
    return ((await answer.json()) as Body).request_id
  })
  .extend(
    "settled",
    ({ gateway }) =>
      (request: string): Promise<{ event: Body; attempts: ReadonlyArray<Body> }> =>
        gateway.eventually(`the end of ${request}`, async () => {
          const { attempts, events } = (await gateway.traced(request)) as Body
          return ["SUCCESSFUL", "FAILED"].includes(events[0]?.status) ? { event: events[0], attempts } : null
        })
  )

const attemptOf = async (gateway: Gateway, id: string): Promise<Body> =>
  (await gateway.call("GET", `/attempts/${id}`)).body

const nothing: Reply = () => null
const nobody = "des_00000000000000000000000000"

describe("Handshake of a tunnel", () => {
  it("A tunnel call without an upgrade is answered with 426", async ({ gateway }) => {
    for (const path of ["/v1/connect", "/connect"]) {
      const answer = await fetch(`${gateway.origin}${path}?destination_id=${nobody}`)
      expect(answer.status).toBe(426)
      expect(await answer.json()).toMatchObject({ code: "UPGRADE_REQUIRED" })
    }
  })

  it("A tunnel accepts keys and sessions, in headers and in subprotocols", async ({ connect, gateway, routed }) => {
    const { destination } = await routed()
    const session = await gateway.session("member")
    const hello = { type: "hello", destination_id: destination.id, heartbeat_seconds: 30, max_in_flight: 50 }
    for (const options of [
      {},
      { path: "/connect" },
      { headers: { "x-api-key": gateway.key } },
      { headers: { authorization: `Bearer ${session}`, "x-team-id": "tm_demo" } },
      { headers: {}, protocols: ["tunnel.v1", `token.${base64url(gateway.key)}`] }
    ]) {
      const client = connect(destination.id, options)
      expect(await client.greeted()).toMatchObject(hello)
      expect((await client.greeted()).cli_id).toMatch(/^cli_/)
      expect(client.socket.protocol).toBe("protocols" in options ? "tunnel.v1" : "")
    }
  })

  it("The close code of a refused tunnel states the reason", async ({ connect, gateway, routed }) => {
    const { destination } = await routed()
    const other = await gateway.destination({ url: "http://127.0.0.1:1/" })
    const deleted = await gateway.destination({}, "CLI")
    await gateway.api("DELETE", `/destinations/${deleted.id}`)
    const team = gateway.name("tm_other")
    const key = `gwk_${team}`
    await gateway.sql("insert into teams (id, name, created_at) values ($1, $1, now())", [team])
    await gateway.sql(
      `insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
        values ($1, $2, '****', 'unused', '****')`,
      [team, hashToken(key)]
    )
    const stranger = await gateway.session("member", team)
    for (const [id, options, code, reason] of [
      [destination.id, { headers: {} }, 4401, "UNAUTHENTICATED"],
      [destination.id, { key: "gwk_wrong" }, 4401, "INVALID_API_KEY"],
      [destination.id, { key: `ses_${"0".repeat(64)}` }, 4401, "SESSION_EXPIRED"],
      [
        destination.id,
        { headers: { authorization: `Bearer ${gateway.key}`, "x-team-id": team } },
        4403,
        "TEAM_FORBIDDEN"
      ],
      [destination.id, { key }, 4404, "NOT_FOUND"],
      [destination.id, { key: stranger }, 4404, "NOT_FOUND"],
      [nobody, {}, 4404, "NOT_FOUND"],
      ["nonsense", {}, 4404, "NOT_FOUND"],
      [other.id, {}, 4404, "NOT_FOUND"],
      [deleted.id, {}, 4404, "NOT_FOUND"]
    ] as const) {
      const client = connect(id, options)
      expect(await client.ended(), `${id} ${JSON.stringify(options)}`).toEqual({ code, reason })
      expect(client.frames).toEqual([])
    }
  })

  it("A tunnel accepts only a local URL of the client's own machine", async ({ connect, routed }) => {
    const { destination } = await routed()
    for (const localUrl of [
      "http://example.com",
      "http://localhost.example.com",
      "ftp://localhost",
      "http://u:p@localhost",
      "http://localhost/?a=1",
      "http://10.0.0.1",
      "localhost:3000",
      `http://localhost/${"x".repeat(3_000)}`
    ]) {
      const client = connect(destination.id, { localUrl })
      expect(await eventually("the refusal", () => client.refused), localUrl).toBe(400)
    }
  })
})

describe("Delivery through a tunnel", () => {
  it("A tunnel delivery is the request of an HTTP destination, and its answer is the attempt's result", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const config = { path: "/hooks?own=1", auth_type: "SERVICE_SIGNATURE", auth: {} }
    const { connection, destination, source } = await routed(config)
    const reply: Reply = () => ({
      status: 201,
      status_text: "Created",
      headers: { "Content-Type": "text/plain", "set-cookie": ["a=1", "b=2"], "bad name": "x", bad: "a\nb" },
      body: "thank you"
    })
    const client = connect(destination.id, { localUrl: "http://localhost:3000/app/", reply })
    const { cli_id } = await client.greeted()
    const request = await send(source.id, '{"n":1,"t":"ä"}', "/orders?x=1")
    const { attempts, event } = await settled(request)
    const [{ job_id, timeout_ms, request: sent }] = (await client.delivered(1)) as [Body]
    expect(timeout_ms).toBe(30_000)
    expect(job_id).toContain(event.id)
    expect(sent).toMatchObject({
      team_id: "tm_demo",
      source_id: source.id,
      connection_id: connection.id,
      destination_id: destination.id,
      request_id: request,
      event_id: event.id,
      event_data_id: event.event_data_id,
      attempt_number: 1,
      local_url: "http://localhost:3000/app",
      method: "POST",
      path: "/hooks/orders?own=1&x=1",
      body: '{"n":1,"t":"ä"}'
    })
    expect(sent).not.toHaveProperty("body_base64")
    expect(sent.headers).toMatchObject({
      "x-gateway-tunnel": "cli",
      "x-gateway-event-id": event.id,
      "x-gateway-attempt-count": "1",
      "x-of-the-sender": "yes",
      "webhook-id": event.id,
      "webhook-signature": expect.stringMatching(/^v1,/),
      "content-type": "application/json"
    })
    expect(event).toMatchObject({ status: "SUCCESSFUL", attempts: 1, response_status: 201, cli_id })
    expect(attempts[0]).toMatchObject({
      response_status: 201,
      error_code: null,
      requested_url: "http://localhost:3000/app/hooks/orders?own=1&x=1",
      body: "thank you"
    })
    const { response_headers } = await attemptOf(gateway, attempts[0]!.id)
    expect(response_headers).toEqual({ "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] })
  })

  it("Tunnel deliveries are counted by their request, however they were routed", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const code = `addHandler("transform", (request) => ({ ...request, body: { made: true } }))`
    const { body: transformation } = await gateway.call("POST", "/transformations", {
      name: gateway.name("made"),
      code
    })
    const { connection, destination, source } = await routed()
    const plain = await gateway.destination({}, "MOCK_API")
    await gateway.connection(source, plain)
    const client = connect(destination.id)
    await client.greeted()
    const counts = async (id: string): Promise<ReadonlyArray<number>> => {
      const { cli_events_count, events_count, ignored_count } = (await gateway.call("GET", `/requests/${id}`)).body
      return [events_count, cli_events_count, ignored_count]
    }
    const rules = (rules: Rules) => gateway.api("PATCH", `/connections/${connection.id}`, { rules: [...rules] })

    const direct = await send(source.id)
    await settled(direct)
    expect(await counts(direct)).toEqual([2, 1, 0])

    await rules([{ type: "transform", transformation_id: transformation.id }])
    const made = await send(source.id)
    const delivered = (await client.delivered(2)).map((frame: Body) => frame.request)
    expect(await counts(made)).toEqual([2, 1, 0])
    expect(delivered[1]).toMatchObject({ request_id: made, body: '{"made":true}' })
    const { body: event } = await gateway.call("GET", `/events/${delivered[1]!.event_id}`)
    expect(delivered[1]!.event_data_id).toBe(event.event_data_id)
    expect(new Set(delivered.map(({ event_data_id }) => event_data_id)).size).toBe(2)

    await rules([
      { type: "transform", transformation_id: transformation.id },
      { type: "filter", body: { made: false } }
    ])
    const missed = await send(source.id)
    await gateway.eventually("it is filtered", async () => ((await counts(missed))[2] === 1 ? true : null))
    expect(await counts(missed)).toEqual([1, 0, 1])

    // What its destination is now is what counts from now on.
    await rules([])
    await gateway.api("PATCH", `/destinations/${destination.id}`, { type: "MOCK_API", config: {} })
    expect(await counts(await send(source.id))).toEqual([2, 0, 0])
  })

  it("A tunnel carries any bytes in both directions", async ({ connect, routed, send, settled }) => {
    const { destination, source } = await routed()
    const sent = Buffer.from([0, 0xff, 0xfe, 0x80, 10, 0])
    const client = connect(destination.id, {
      reply: () => ({ status: 200, headers: {}, body_base64: sent.toString("base64") })
    })
    await client.greeted()
    const first = await settled(await send(source.id, sent))
    expect(first.event.status).toBe("SUCCESSFUL")
    const large = Buffer.alloc(10 * 1024 * 1024, "0123456789abcdef")
    expect((await settled(await send(source.id, large))).event.status).toBe("SUCCESSFUL")
    const [binary, big] = (await client.delivered(2)) as [Body, Body]
    expect(binary.request).not.toHaveProperty("body")
    expect(Buffer.from(binary.request.body_base64, "base64")).toEqual(sent)
    expect(Buffer.from(big.request.body_base64, "base64").equals(large)).toBe(true)
  })

  it("A tunnel delivery fails by its answer and is retried by the retry rule", async ({
    connect,
    routed,
    send,
    settled
  }) => {
    const retry = { type: "retry", strategy: "linear", interval: 1_000, count: 1 } as const
    const { destination, source } = await routed({}, [retry])
    const client = connect(destination.id, { reply: nothing })
    for (const [said, expected] of [
      [
        { status: 500, body: "oops" },
        { error_code: "BAD_RESPONSE", response_status: 500, body: "oops" }
      ],
      [
        { status: 502, error: "ECONNREFUSED\u0000\n" },
        { error_code: "CLI", response_status: 502 }
      ],
      [{ status: "200" }, { error_code: "PROTOCOL_ERROR", response_status: null }],
      [
        { status: 200, body: 7 },
        { error_code: "PROTOCOL_ERROR", response_status: null }
      ]
    ] as const) {
      client.reply = ({ request }) => (request.attempt_number === 1 ? said : { status: 200 })
      const { attempts, event } = await settled(await send(source.id))
      const [last, first] = attempts[0]!.attempt_number === 2 ? attempts : attempts.toReversed()
      expect(first).toMatchObject(expected)
      expect(last).toMatchObject({ response_status: 200, attempt_number: 2 })
      expect(event).toMatchObject({ status: "SUCCESSFUL", attempts: 2 })
    }
  })

  it("An answer through a tunnel is stored with the usual limits", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed()
    const headers = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-${i}`, "y".repeat(100)]))
    const client = connect(destination.id, { reply: () => ({ status: 200, headers, body: "z".repeat(100_000) }) })
    await client.greeted()
    const { attempts } = await settled(await send(source.id))
    const attempt = await attemptOf(gateway, attempts[0]!.id)
    expect(attempt.body.length).toBeLessThanOrEqual(64 * 1024)
    expect(Object.keys(attempt.response_headers).length).toBeLessThanOrEqual(100)
    client.reply = () => ({ status: 200, body: "z".repeat(600_000) })
    await send(source.id)
    expect((await client.ended()).code).toBe(1009)
  })

  it("A tunnel delivery is answered once, and only by the client that received it", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed()
    const client = connect(destination.id, { reply: nothing })
    const before = await unexpected(gateway)
    await client.greeted()
    const request = await send(source.id)
    const [{ job_id }] = (await client.delivered(1)) as [Body]
    for (const foreign of ["nobody's", `${newId("evt_", Date.now())}.1`, 7]) {
      client.say({ type: "delivery_result", job_id: foreign, status: 500 })
    }
    client.socket.send("[".repeat(1_000))
    client.socket.send(Buffer.from([1, 2, 3]), { binary: true })
    client.say({ type: "ping" })
    await eventually("a pong", () => client.frames.find(({ type }) => type === "pong"))
    client.answer(job_id, { status: 200 })
    client.answer(job_id, { status: 500 })
    expect((await settled(request)).event).toMatchObject({ status: "SUCCESSFUL", attempts: 1 })
    await eventually("all are counted", async () => ((await unexpected(gateway)) >= before + 5 ? true : null))
    expect(client.closed).toBeNull()
    for (let i = 0; i < 300; i++) client.say({ type: "noise" })
    expect((await client.ended()).code).toBe(1008)
  })

  it("A tunnel client holds at most fifty deliveries at once", async ({ connect, routed, send }) => {
    const { destination, source } = await routed()
    const client = connect(destination.id, { reply: nothing })
    await client.greeted()
    for (let i = 0; i < 60; i++) await send(source.id, JSON.stringify({ i }))
    const held = await client.delivered(50)
    // Each answer permits one further event.
    client.answer(held[0].job_id, { status: 200 })
    expect(await client.delivered(51)).toHaveLength(51)
    expect(new Set(client.deliveries.map(({ job_id }) => job_id)).size).toBe(51)
    client.reply = () => ({ status: 200 })
    for (const { job_id } of client.deliveries) client.answer(job_id, { status: 200 })
    expect(await client.delivered(60)).toHaveLength(60)
  })
})

const unexpected = async ({ key, origin }: Gateway): Promise<number> => {
  const answer = await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${key}` } })
  return (
    sampleValue(parseExposition(await answer.text()), "tidegate_tunnel_results_total", { outcome: "unexpected" }) ?? 0
  )
}

describe("Tunnel without a client", () => {
  it("Events wait for a tunnel client and are then delivered in the order of their arrival", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed()
    const requests: Array<string> = []
    for (let i = 0; i < 20; i++) requests.push(await send(source.id, JSON.stringify({ i })))
    const { events } = (await gateway.traced(requests[0]!)) as Body
    expect(events[0]).toMatchObject({ status: "QUEUED", attempts: 0, cli_id: null })
    const client = connect(destination.id)
    for (const request of requests) expect((await settled(request)).event.status).toBe("SUCCESSFUL")
    expect(client.deliveries.map(({ request }) => JSON.parse(request.body).i)).toEqual(requests.map((_, i) => i))
  })

  it("Unanswered tunnel deliveries are sent again to the next client with the same ids", async ({
    connect,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed({ auth_type: "SERVICE_SIGNATURE", auth: {} })
    const first = connect(destination.id, { reply: nothing })
    await first.greeted()
    const requests = [await send(source.id, '{"i":0}'), await send(source.id, '{"i":1}')]
    const lost = await first.delivered(2)
    first.drop()
    const second = connect(destination.id)
    for (const request of requests) {
      expect((await settled(request)).event).toMatchObject({ status: "SUCCESSFUL", attempts: 1 })
    }
    expect(second.deliveries.map(({ job_id }) => job_id)).toEqual(lost.map(({ job_id }) => job_id))
    for (const [i, { request }] of second.deliveries.entries()) {
      expect(request.headers["webhook-id"]).toBe(lost[i].request.headers["webhook-id"])
      expect(request.event_id).toBe(lost[i].request.event_id)
      expect(request.body).toBe(lost[i].request.body)
    }
  })
})

describe("Session of a tunnel", () => {
  it("A newer tunnel session takes over and receives what the older one has not answered", async ({
    connect,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed()
    const older = connect(destination.id, { reply: nothing })
    await older.greeted()
    const request = await send(source.id)
    const [lost] = await older.delivered(1)
    const newer = connect(destination.id)
    expect((await older.ended()).code).toBe(4409)
    const { event } = await settled(request)
    expect(newer.deliveries.map(({ job_id }) => job_id)).toEqual([lost.job_id])
    expect(event.cli_id).toBe((await newer.greeted()).cli_id)
    expect(event.cli_id).not.toBe((await older.greeted()).cli_id)
  })

  it("One key can hold several tunnels, each on its own destination", async ({ connect, routed, send, settled }) => {
    const some = await Promise.all(Array.from({ length: 5 }, () => routed()))
    const clients = some.map(({ destination }) => connect(destination.id))
    for (const client of clients) await client.greeted()
    const requests = await Promise.all(some.map(({ source }) => send(source.id)))
    for (const request of requests) expect((await settled(request)).event.status).toBe("SUCCESSFUL")
    for (const client of clients) expect(client.deliveries).toHaveLength(1)
  })

  it("A tunnel session ends with 4404 when its destination is deleted or changes its type", async ({
    connect,
    gateway,
    routed
  }) => {
    const [a, b] = [await routed(), await routed()]
    const clients = [connect(a.destination.id), connect(b.destination.id)]
    for (const client of clients) await client.greeted()
    await gateway.api("DELETE", `/destinations/${a.destination.id}` as never)
    await gateway.call("PATCH", `/destinations/${b.destination.id}`, { type: "MOCK_API", config: {} })
    for (const client of clients) expect((await client.ended()).code).toBe(4404)
  })

  it("A tunnel session waits while its destination is disabled or its connection is paused", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const { connection, destination, source } = await routed()
    const client = connect(destination.id)
    await client.greeted()
    await gateway.api("PUT", `/connections/${connection.id}/pause` as never)
    const held = await send(source.id)
    await gateway.api("PUT", `/connections/${connection.id}/unpause` as never)
    expect((await settled(held)).event.status).toBe("SUCCESSFUL")
    await gateway.api("PUT", `/destinations/${destination.id}/disable` as never)
    await gateway.api("PUT", `/destinations/${destination.id}/enable` as never)
    expect((await settled(await send(source.id))).event.status).toBe("SUCCESSFUL")
    expect(client.closed).toBeNull()
  })

  it("A tunnel session keeps the rate limit of its destination", async ({ connect, routed, send, settled }) => {
    const { destination, source } = await routed({ rate_limit: 2, rate_limit_period: "second" })
    const at: Array<number> = []
    const client = connect(destination.id, {
      reply: () => {
        at.push(Date.now())
        return { status: 200 }
      }
    })
    await client.greeted()
    const requests = await Promise.all(Array.from({ length: 5 }, () => send(source.id)))
    for (const request of requests) await settled(request)
    // Sent no faster; how much later they come is the machine's to say.
    expect(at.at(-1)! - at[0]!).toBeGreaterThan(1_000)
  })

  it("A tunnel client is asked to reconnect at shutdown, and no delivery is lost", async ({
    connect,
    gateway,
    routed,
    send,
    settled
  }) => {
    const { destination, source } = await routed()
    const client = connect(destination.id, { reply: nothing })
    await client.greeted()
    const request = await send(source.id)
    await client.delivered(1)
    await gateway.restart("SIGTERM")
    expect((await client.ended()).code).toBe(1012)
    const next = connect(destination.id)
    expect((await settled(request)).event).toMatchObject({ status: "SUCCESSFUL", attempts: 1 })
    expect(next.deliveries).toHaveLength(1)
  })
})
