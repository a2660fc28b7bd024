import { Webhook } from "standardwebhooks"
import { describe, expect } from "vitest"
import type { DestinationConfig, Rules } from "../support/Contract.ts"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Body, Gateway } from "../support/Gateway.ts"
import { ownIt } from "../support/it.ts"

/** Destinations of type PULL: consumers fetch their events, and settle them. `docs/destinations/pull.md` is what is held to here. */

const retried: Rules = [{ type: "retry", strategy: "linear", interval: 1_000, count: 5 }]

const it = ownIt
  .extend("routed", ({ gateway }) => async (config: DestinationConfig = {}, rules: Rules = retried) => {
    const source = await gateway.source()
    const destination = await gateway.destination(config, "PULL")
    const connection = await gateway.connection(source, destination, rules)
    return { source: source.id, destination: destination.id, connection: connection.id }
  })
  .extend("send", ({ gateway }) => async (source: string, body: string | Buffer = "{}", path = ""): Promise<string> => {
    const answer = await fetch(`${gateway.origin}/e/${source}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : new Uint8Array(body)
    })
    expect(answer.status).toBe(200)
    return ((await answer.json()) as Body).request_id
  })

const pull = (gateway: Gateway, destination: string, body: object = {}, key = gateway.key) =>
  gateway.call("POST", `/destinations/${destination}/messages/pull`, body, key)

const settle = async (gateway: Gateway, how: "ack" | "nack", destination: string, messages: ReadonlyArray<Body>) => {
  const receipts = messages.map(({ receipt }) => receipt)
  return (await gateway.call("POST", `/destinations/${destination}/messages/${how}`, { receipts })).body
}

/** The messages of calls that are repeated until there are some, as consumers repeat them. */
const fetched = (gateway: Gateway, destination: string, max = 10): Promise<ReadonlyArray<Body>> =>
  gateway.eventually(`messages of ${destination}`, async () => {
    const { messages } = (await pull(gateway, destination, { max, wait_seconds: 20 })).body
    return messages.length > 0 ? messages : null
  })

const attempted = (gateway: Gateway, request: string): Promise<{ event: Body; attempts: ReadonlyArray<Body> }> =>
  gateway.eventually(`the end of ${request}`, async () => {
    const { attempts, events } = (await gateway.traced(request)) as Body
    return ["SUCCESSFUL", "FAILED"].includes(events[0]?.status) ? { event: events[0], attempts } : null
  })

const waitingCalls = async ({ key, origin }: Gateway): Promise<number> => {
  const answer = await fetch(`${origin}/metrics`, { headers: { authorization: `Bearer ${key}` } })
  return sampleValue(parseExposition(await answer.text()), "tidegate_pulls_waiting", {}) ?? 0
}

describe("Consumer of a PULL destination", () => {
  it("A consumer fetches an event as a delivery by HTTP has it, verifies its signature, and acknowledges it", async ({
    gateway,
    routed,
    send
  }) => {
    const { destination, source } = await routed({ auth_type: "SERVICE_SIGNATURE" })
    const request = await send(source, '{"id":"o_1"}', "/orders?shop=1")
    const [message] = await fetched(gateway, destination)
    expect(message).toMatchObject({
      request_id: request,
      source_id: source,
      attempt_number: 1,
      method: "POST",
      path: "/orders?shop=1",
      body: '{"id":"o_1"}',
      headers: { "content-type": "application/json", "x-gateway-attempt-count": "1" }
    })
    const webhook = new Webhook(await gateway.signingSecret(), { format: "raw" })
    expect(webhook.verify(message.body, message.headers)).toEqual({ id: "o_1" })
    const answer = { settled: [message.receipt], expired: [] }
    expect(await settle(gateway, "ack", destination, [message])).toEqual(answer)
    expect(await settle(gateway, "ack", destination, [message])).toEqual(answer)
    const { attempts, event } = await attempted(gateway, request)
    expect(event.status).toBe("SUCCESSFUL")
    expect(attempts).toMatchObject([{ response_status: 204, requested_url: "https://consumer.invalid/orders?shop=1" }])
  })

  it("A body that is no text is fetched in base64", async ({ gateway, routed, send }) => {
    const { destination, source } = await routed()
    const bytes = Buffer.from([0, 255, 254, 10])
    await send(source, bytes)
    const messages = await fetched(gateway, destination)
    expect(Buffer.from(messages[0].body_base64, "base64")).toEqual(bytes)
    await settle(gateway, "ack", destination, messages)
  })

  it("A refused event is handed out again by the retry rule, with the same ids", async ({ gateway, routed, send }) => {
    const { destination, source } = await routed()
    const request = await send(source)
    const first = await fetched(gateway, destination)
    expect((await settle(gateway, "nack", destination, first)).settled).toEqual([first[0].receipt])
    const second = await fetched(gateway, destination)
    expect(second[0].headers["idempotency-key"]).toBe(first[0].headers["idempotency-key"])
    expect([first[0].attempt_number, second[0].attempt_number]).toEqual([1, 2])
    await settle(gateway, "ack", destination, second)
    const { attempts } = await attempted(gateway, request)
    expect(new Set(attempts.map(({ error_code }) => error_code))).toEqual(new Set(["BAD_RESPONSE", null]))
    expect(attempts).toHaveLength(2)
  })

  it("After a kill between fetch and acknowledgement nothing is lost, and the ids repeat", async ({
    gateway,
    routed,
    send
  }) => {
    const { destination, source } = await routed({ lease_seconds: 3_600 })
    const requests = [await send(source, "1"), await send(source, "2"), await send(source, "3")]
    const before = new Map<string, Body>()
    while (before.size < 3) for (const one of await fetched(gateway, destination)) before.set(one.receipt, one)
    await gateway.restart("SIGKILL")
    const after = new Map<string, Body>()
    while (after.size < 3) for (const one of await fetched(gateway, destination)) after.set(one.receipt, one)
    expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted())
    for (const [receipt, { headers }] of after) {
      expect(headers["idempotency-key"]).toBe(before.get(receipt)!.headers["idempotency-key"])
    }
    // What was fetched before the kill may be acknowledged after it, once it is leased again.
    const { settled } = await settle(gateway, "ack", destination, [...before.values()])
    expect(settled.toSorted()).toEqual([...before.keys()].toSorted())
    for (const request of requests) expect((await attempted(gateway, request)).attempts).toHaveLength(1)
  })
})

describe("Connection to a PULL destination", () => {
  it("A transformed event is handed out when its paused connection goes on, and not before", async ({
    gateway,
    routed,
    send
  }) => {
    const code = `addHandler("transform", (request) => {
      request.body = { order: request.body.id, tenant: "acme" }
      request.headers["x-tenant"] = "acme"
      return request
    })`
    const { connection, destination, source } = await routed({}, [
      { type: "transform", transformation: { name: gateway.name("tenant"), code } }
    ])
    await gateway.api("PUT", `/connections/${connection}/pause`)
    const request = await send(source, '{"id":"o_1"}')
    await gateway.eventually("an event on hold", async () => {
      const { events } = (await gateway.traced(request)) as Body
      return events[0]?.status === "HOLD" ? true : null
    })
    expect((await pull(gateway, destination)).body).toEqual({ messages: [], leased_until: null })
    await gateway.api("PUT", `/connections/${connection}/unpause`)
    const messages = await fetched(gateway, destination)
    expect(messages).toMatchObject([
      { attempt_number: 1, body: '{"order":"o_1","tenant":"acme"}', headers: { "x-tenant": "acme" } }
    ])
    await settle(gateway, "ack", destination, messages)
    expect((await attempted(gateway, request)).event.status).toBe("SUCCESSFUL")
  })

  it("Refused events are handed out again by a bulk retry, with the ids by which a consumer recognises them", async ({
    gateway,
    routed,
    send
  }) => {
    const { destination, source } = await routed({ auth_type: "SERVICE_SIGNATURE" }, [])
    const requests = [await send(source, "1"), await send(source, "2"), await send(source, "3")]
    const refused = new Map<string, Body>()
    while (refused.size < 3) {
      const messages = await fetched(gateway, destination)
      for (const one of messages) refused.set(one.request_id, one)
      await settle(gateway, "nack", destination, messages)
    }
    for (const request of requests) expect((await attempted(gateway, request)).event.status).toBe("FAILED")
    const filter = { destination_id: destination, status: "FAILED", from: "now-1h" }
    const { id } = await gateway.api("POST", "/events/bulk_operations", filter)
    const again = new Map<string, Body>()
    while (again.size < 3) {
      const messages = await fetched(gateway, destination)
      for (const one of messages) again.set(one.request_id, one)
      expect((await settle(gateway, "ack", destination, messages)).expired).toEqual([])
    }
    const operation = await gateway.eventually("the end of the bulk retry", async () => {
      const body = await gateway.api("GET", `/events/bulk_operations/${id}`)
      return body.cancelable ? null : body
    })
    expect(operation).toMatchObject({ status: "COMPLETED", total_count: 3, failed_count: 0 })
    for (const [request, { body, event_id, headers }] of again) {
      const first = refused.get(request)!
      expect(event_id).not.toBe(first.event_id)
      expect({ body, id: headers["webhook-id"] }).toEqual({ body: first.body, id: first.headers["webhook-id"] })
    }
    await gateway.eventually("all are resolved", async () => {
      const query = `destination_id=${destination}&status=FAILED&resolved=true`
      const { total } = await gateway.api("GET", `/events/count?${query}`)
      return total === 3 ? true : null
    })
  })
})

describe("Stranger at a PULL destination", () => {
  it("A destination of another team, of another type, or none at all is not found", async ({ gateway, routed }) => {
    const { destination } = await routed()
    const other = await gateway.forTeam()
    const http = await gateway.destination({ url: "https://example.com/" })
    for (const [id, key] of [
      [destination, other.key],
      [http.id, gateway.key],
      ["des_00000000000000000000000000", gateway.key],
      ["nothing", gateway.key]
    ] as const) {
      expect([id, (await pull(gateway, id, {}, key)).status]).toEqual([id, 404])
      const body = { receipts: ["evt_1.1"] }
      for (const how of ["ack", "nack"]) {
        expect((await gateway.call("POST", `/destinations/${id}/messages/${how}`, body, key)).status).toBe(404)
      }
    }
  })

  it("Numbers and texts beyond their limits are refused", async ({ gateway, routed }) => {
    const { destination } = await routed()
    for (const body of [
      { max: 101 },
      { max: 0 },
      { max: 1e300 },
      { wait_seconds: 21 },
      { wait_seconds: -1 },
      { m: 1 }
    ]) {
      expect([body, (await pull(gateway, destination, body)).status]).toEqual([body, 400])
    }
    for (const body of [{}, { receipts: [] }, { receipts: Array.from({ length: 101 }, String) }, { receipts: [1] }]) {
      expect((await gateway.call("POST", `/destinations/${destination}/messages/ack`, body)).status).toBe(400)
    }
    const unknown = { receipts: ["evt_1.1", "evt_1.1"] }
    const answer = await gateway.call("POST", `/destinations/${destination}/messages/nack`, unknown)
    expect(answer.body).toEqual({ settled: [], expired: ["evt_1.1"] })
  })

  it("A project key fetches only from the destinations of its grants", async ({ gateway, routed }) => {
    const [mine, other] = [await routed(), await routed()]
    const owner = await gateway.session("owner")
    const keyWith = async (scopes: ReadonlyArray<string>, execute_grants: ReadonlyArray<string>) => {
      const key = { name: gateway.name("key"), scopes, execute_grants }
      const { body } = await gateway.call("POST", "/project-api-keys", key, owner)
      return body.data.api_key === undefined ? body : body.data
    }
    const grants = [`POST:/v1/destinations/${mine.destination}/messages/pull`]
    const narrow = await keyWith(["control:execute"], grants)
    expect(narrow).toMatchObject({ execute_grants: grants })
    const { api_key } = narrow
    const quick = { wait_seconds: 0 }
    expect((await pull(gateway, mine.destination, quick, api_key)).status).toBe(200)
    const refused = await pull(gateway, other.destination, quick, api_key)
    expect([refused.status, refused.body.code]).toEqual([403, "EXECUTE_GRANT_REQUIRED"])
    const ack = await gateway.call(
      "POST",
      `/destinations/${mine.destination}/messages/ack`,
      { receipts: ["evt_1.1"] },
      api_key
    )
    expect([ack.status, ack.body.code]).toEqual([403, "EXECUTE_GRANT_REQUIRED"])
    const every = await keyWith(["control:execute"], ["POST:/v1/destinations/:id/messages/pull"])
    expect((await pull(gateway, other.destination, quick, every.api_key)).status).toBe(200)
    const wrong = await keyWith(["control:execute"], [`POST:/v1/sources/${mine.destination}/messages/pull`])
    expect(wrong.code).toBe("INVALID_KEY_POLICY")
    const reader = await keyWith(["control:read"], [])
    expect((await pull(gateway, mine.destination, quick, reader.api_key)).body.code).toBe("INSUFFICIENT_SCOPE")
  })

  it("Waiting calls of a team are limited, and calls that are given up free their places and take no message", async ({
    gateway,
    routed,
    send
  }) => {
    const { destination, source } = await routed({}, [])
    const calls = new AbortController()
    const given = Array.from({ length: 64 }, () =>
      fetch(`${gateway.origin}/destinations/${destination}/messages/pull`, {
        method: "POST",
        headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
        body: JSON.stringify({ wait_seconds: 20 }),
        signal: calls.signal
      }).then(
        () => "answered",
        () => "given up"
      )
    )
    await gateway.eventually("64 calls wait", async () => ((await waitingCalls(gateway)) === 64 ? true : null))
    const refused = await pull(gateway, destination)
    expect([refused.status, refused.body.code]).toEqual([429, "RATE_LIMITED"])
    calls.abort()
    expect(new Set(await Promise.all(given))).toEqual(new Set(["given up"]))
    await gateway.eventually("no call waits", async () => ((await waitingCalls(gateway)) === 0 ? true : null))
    const request = await send(source)
    const messages = await fetched(gateway, destination)
    expect(messages).toMatchObject([{ request_id: request, attempt_number: 1 }])
    await settle(gateway, "ack", destination, messages)
    expect((await attempted(gateway, request)).attempts).toHaveLength(1)
  })
})
