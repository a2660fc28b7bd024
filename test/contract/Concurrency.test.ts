import type { ServerResponse } from "node:http"
import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { it as gatewayIt } from "../support/it.ts"
import { request } from "../support/RawHttp.ts"
import { hanging, type Target } from "../support/Target.ts"

/** How many deliveries a destination has on the wire: contract 13. */

/** A target that holds what it receives until the test lets it answer, and counts how many it held at most. */
const holding = (target: Target) => {
  const held: Array<ServerResponse> = []
  let most = 0
  target.reply = (response) => {
    held.push(response)
    most = Math.max(most, held.length)
  }
  return {
    most: () => most,
    answer: (count = held.length): void => {
      for (const response of held.splice(0, count)) response.end("ok")
    }
  }
}

const it = gatewayIt.extend("send", ({ gateway }) => async (source: Source, count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 50) {
    const sent = Array.from({ length: Math.min(50, left) }, () =>
      request(gateway.port, { body: "{}", path: `/e/${source.id}` })
    )
    for (const { status } of await Promise.all(sent)) expect(status).toBe(200)
  }
})

describe("Concurrency limit", () => {
  it("Deliveries at once never exceed max_concurrency, and a change applies from the next one on", async ({
    gateway,
    send,
    target
  }) => {
    const destination = await gateway.destination({ url: target.origin, max_concurrency: 3 })
    expect(destination.config).toMatchObject({ max_concurrency: 3 })
    const source = await gateway.source()
    await gateway.connection(source, destination)
    const { answer, most } = holding(target)
    await send(source, 40)
    for (let arrived = 3; arrived < 20; arrived++) {
      await target.next(arrived)
      answer(1)
    }
    expect(most()).toBe(3)
    await gateway.api("PATCH", `/destinations/${destination.id}`, { config: { max_concurrency: 8 } })
    // 17 are answered: 8 are held.
    await target.next(17 + 8)
    await gateway.api("PATCH", `/destinations/${destination.id}`, { config: { max_concurrency: 1 } })
    answer()
    for (let arrived = 26; arrived <= 40; arrived++) {
      await target.next(arrived)
      answer()
    }
    expect(most()).toBe(8)
  })

  it("Deliveries at once grow as a target with constant latency needs", async ({ gateway, send, target }) => {
    const { destination, source } = await gateway.route(target)
    expect(destination.config).toMatchObject({ max_concurrency: null })
    const onWire = { now: 0, most: 0 }
    target.reply = (response) => {
      onWire.most = Math.max(onWire.most, ++onWire.now)
      setTimeout(() => {
        onWire.now--
        response.end("ok")
      }, 400)
    }
    while (onWire.most < 150) await send(source, 300)
  })

  it("Deliveries to a hanging destination leave enough concurrency for others", async ({
    gateway,
    send,
    target,
    upstream
  }) => {
    upstream.reply = hanging
    const hung = await gateway.destination({ url: upstream.origin, max_concurrency: 2_000 })
    const source = await gateway.source()
    await gateway.connection(source, hung)
    await send(source, 300)
    const { source: other } = await gateway.route(target)
    await send(other, 100)
    await target.next(100)
    await upstream.next(300)
  })
})

describe("max_concurrency", () => {
  it("The setting max_concurrency is refused out of its bounds and where it has no effect", async ({
    gateway,
    target
  }) => {
    const config = { max_concurrency: 5 }
    const mock = await gateway.call("POST", "/destinations", { name: "mock-at-once", type: "MOCK_API", config })
    expect(mock.status).toBe(400)
    expect(mock.body).toMatchObject({
      code: "VALIDATION_ERROR",
      data: { fields: [{ path: "config.max_concurrency", message: expect.stringContaining("no effect") as string }] }
    })
    for (const max_concurrency of [0, 2_001, 1.5, "10"]) {
      const wrong = { name: "wrong", config: { url: target.origin, max_concurrency } }
      expect((await gateway.call("POST", "/destinations", wrong)).status).toBe(400)
    }
    const right = await gateway.destination({ url: target.origin, max_concurrency: 2_000 })
    const cleared = await gateway.api("PATCH", `/destinations/${right.id}`, { config: { max_concurrency: null } })
    expect(cleared.config).toMatchObject({ max_concurrency: null })
  })
})
