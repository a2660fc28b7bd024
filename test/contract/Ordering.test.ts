import { describe, expect } from "vitest"
import { it } from "../support/it.ts"
import { request } from "../support/RawHttp.ts"
import type { Source } from "../support/Contract.ts"

/** Strict order per key: contract 13. */

const ordered = (on_failure: "block" | "skip") => ({ ordering: { key: "body.key", on_failure } })

interface Sent {
  readonly key: string
  readonly n: number
}

const post = async (port: number, source: Source, body: Sent): Promise<void> => {
  const { status } = await request(port, {
    body: JSON.stringify(body),
    path: `/e/${source.id}`,
    headers: [["content-type", "application/json"]]
  })
  expect(status).toBe(200)
}

describe("Ordering of a connection", () => {
  it("A connection's ordering is null by default, blocks by default, and can be removed", async ({
    gateway,
    target
  }) => {
    const { connection } = await gateway.route(target)
    const path = `/connections/${connection.id}`
    expect(await gateway.api("GET", path)).toMatchObject({ ordering: null })
    const key = "headers.X-Customer"
    expect(await gateway.api("PATCH", path, { ordering: { key } })).toMatchObject({
      ordering: { key, on_failure: "block" }
    })
    expect(await gateway.api("PATCH", path, { name: "renamed" })).toMatchObject({ ordering: { key } })
    expect(await gateway.api("PATCH", path, { ordering: null })).toMatchObject({ ordering: null })
  })

  it("A connection delivers the events of one ordering key one at a time in the order sent", async ({
    gateway,
    target
  }) => {
    const source = await gateway.source()
    await gateway.connection(source, await gateway.destination({ url: target.origin }), [], ordered("block"))
    const underWay = new Set<string>()
    const arrived = new Map<string, Array<number>>()
    target.reply = (response, delivery) => {
      const { key, n } = JSON.parse(delivery.body.toString()) as Sent
      expect(underWay.has(key), "one at a time").toBe(false)
      underWay.add(key)
      arrived.set(key, [...(arrived.get(key) ?? []), n])
      setTimeout(() => {
        underWay.delete(key)
        response.end("ok")
      }, 2)
    }
    const keys = ["a", "b", "c", "d"]
    await Promise.all(
      keys.map(async (key) => {
        for (let n = 0; n < 25; n++) await post(gateway.port, source, { key, n })
      })
    )
    await target.next(100)
    for (const key of keys) expect(arrived.get(key)).toEqual(Array.from({ length: 25 }, (_, n) => n))
  })

  for (const on_failure of ["block", "skip"] as const) {
    it(`A connection with on_failure ${on_failure} ${on_failure === "block" ? "waits for" : "passes"} an event that is retried`, async ({
      gateway,
      target
    }) => {
      const source = await gateway.source()
      const destination = await gateway.destination({ url: target.origin })
      const retry = { type: "retry" as const, strategy: "linear" as const, count: 3, interval: 1_000 }
      await gateway.connection(source, destination, [retry], ordered(on_failure))
      const arrived: Array<string> = []
      const posted = Promise.withResolvers<void>()
      target.reply = async (response, delivery) => {
        const { key, n } = JSON.parse(delivery.body.toString()) as Sent
        const fails = n === 0 && !arrived.includes(`${key}${n}`)
        arrived.push(`${key}${n}`)
        // It fails when the others wait: its retry, a second later, must not come before they were sent.
        if (fails) await posted.promise
        response.writeHead(fails ? 500 : 200).end()
      }
      for (let n = 0; n < 3; n++) await post(gateway.port, source, { key: "x", n })
      await post(gateway.port, source, { key: "y", n: 1 })
      posted.resolve()
      await target.next(5)
      expect(arrived.filter((one) => one.startsWith("x"))).toEqual(
        on_failure === "block" ? ["x0", "x0", "x1", "x2"] : ["x0", "x1", "x2", "x0"]
      )
      expect(arrived.indexOf("y1"), "another key does not wait").toBeLessThan(arrived.lastIndexOf("x0"))
    })
  }

  it("Ordering holds behind slow rules, and also when they are removed", async ({ gateway, target }) => {
    const source = await gateway.source()
    const transformation = { name: "same", code: 'addHandler("transform", (request) => request)' }
    const connection = await gateway.connection(
      source,
      await gateway.destination({ url: target.origin }),
      [{ type: "transform", transformation }],
      ordered("block")
    )
    const arrived: Array<number> = []
    target.reply = (response, delivery) => {
      arrived.push((JSON.parse(delivery.body.toString()) as Sent).n)
      response.end()
    }
    for (let n = 0; n < 20; n++) await post(gateway.port, source, { key: "x", n })
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [] })
    for (let n = 20; n < 40; n++) await post(gateway.port, source, { key: "x", n })
    await target.next(40)
    expect(arrived).toEqual(Array.from({ length: 40 }, (_, n) => n))
  })
})
