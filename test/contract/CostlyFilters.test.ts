import { describe, expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"
import { heldMs, leastMsOf, timesSlower, watchedLoop } from "../support/LoopHeld.ts"
import { meanwhile } from "../support/Meanwhile.ts"
import { patience } from "../support/Waiting.ts"

/** Filters that cost more than they weigh: where they are written, where they are tried, and with each request that they are asked about. */

const it = gatewayIt
  .extend("settings", { scope: "file" }, watchedLoop)
  .extend("owner", { scope: "file" }, ({ gateway }) => gateway.session("owner"))

/**
 * The promise is 50 ms of an idle machine; each part of this work takes 35 at most. What is measured has all else in it that the loop does between two
 * looks, and on a machine that is shared it is several times that. Without the bounds, it is 500 to 18,000.
 */
const boundMs = (): number => 250 * timesSlower()

const list = <A>(count: number, of: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, i) => of(i))
const nested = (levels: number): unknown => JSON.parse('{"a":'.repeat(levels) + "1" + "}".repeat(levels))

/** What may be refused, and must be nothing worse. */
const written: ReadonlyArray<readonly [name: string, conditions: unknown]> = [
  ["ranges without case", { body: { $or: list(64, () => ({ a: { $regex: `(?i)${"[b-\u{10ffff}]".repeat(60)}` } })) } }],
  [
    "classes without case",
    { body: { $or: list(64, () => ({ a: { $regex: `(?i)${"[\\pL\\pN\\pS]".repeat(40)}` } })) } }
  ],
  ["repetitions", { body: { $or: list(64, () => ({ a: { $regex: `(${"[\\pL]".repeat(80)}){900}` } })) } }],
  ["a path of 10,000 segments", { body: { ["a.".repeat(10_000) + "a"]: 1 } }],
  ["a reference of 10,000 segments", { body: { a: { $eq: { $ref: "a.".repeat(10_000) + "a" } } } }],
  ["empty segments", { body: { "..a..": 1, "": 2, ".": 3 }, query: { "": 1 } }],
  ["prototypes", JSON.parse('{"body":{"__proto__":{"a":1},"constructor.prototype.b":2},"headers":{"__proto__":"x"}}')],
  ["far elements", { body: { "a.999999999": 1, "a.1e9": 2, "a.9999999999": 3, a: { $ref: "b[999999999]" } } }],
  ["numbers beyond 2^53", JSON.parse('{"body":{"a":{"$gt":9007199254740993,"$lt":1e400},"b":-0,"c":1e-400}}')],
  ["any characters", { body: { "\u0000": "\u0000", "\ud800": "\udfff", "é\u202e": "𝔸" }, path: "\u2028" }],
  ["10 levels", { body: nested(9) }],
  ["1,000 levels", { body: nested(1_000) }],
  ["64 Ki characters", { body: { a: { $in: list(9_000, (i) => `n${i}`) } } }],
  ["a megabyte", { body: { a: { $in: list(100_000, (i) => `n${i}`) } } }]
]

const document = {
  a: list(200, () => "9".repeat(60)),
  b: nested(100),
  text: "a".repeat(100_000)
}

describe("Costly filters", () => {
  it.for(written)("A costly filter works or is refused in time: %s", async ([, conditions], { gateway, owner }) => {
    const used = async (): Promise<number> => {
      await heldMs()
      const name = gateway.name("filter")
      const saved = await gateway.call("POST", "/filters", { name, conditions }, owner)
      const rules = [{ type: "filter", ...(conditions as object) }]
      const source = await gateway.source()
      const destination = await gateway.destination({ url: "http://127.0.0.1:9/" })
      const connected = await gateway.call("POST", "/connections", {
        name: gateway.name("connection"),
        source_id: source.id,
        destination_id: destination.id,
        rules
      })
      const tried = await gateway.call("POST", "/filters/test", { conditions, request: { body: document } }, owner)
      for (const { body, status } of [saved, connected, tried]) {
        expect([200, 400, 413, 422], JSON.stringify(body).slice(0, 300)).toContain(status)
      }
      if (connected.status === 200) {
        const posted = await fetch(`${gateway.origin}/e/${source.id}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(document),
          signal: AbortSignal.timeout(patience)
        })
        expect(posted.status).toBe(200)
      }
      return (await heldMs()).processorMs
    }
    expect(await leastMsOf(boundMs, used)).toBeLessThan(boundMs())
  })

  it("A hundred costly filters on one source delay nobody, and each decides", async ({ gateway }) => {
    const [source, plain] = [await gateway.source(), await gateway.source()]
    const destination = await gateway.destination({ url: "http://127.0.0.1:9/" })
    // As costly as one may be: nearly a million steps for each of these bodies.
    const filter = { type: "filter", body: { a: { $nin: list(60, (i) => i) }, text: { $regex: "([a-z]+){3}[0-9]" } } }
    await Promise.all(
      list(100, async (i) => {
        const answer = await gateway.call("POST", "/connections", {
          name: gateway.name(`connection-${i}`),
          source_id: source.id,
          destination_id: destination.id,
          rules: [filter]
        })
        expect(answer.status, JSON.stringify(answer.body)).toBe(200)
      })
    )
    const post = async (id: string, body: string): Promise<{ readonly request_id: string }> => {
      const answer = await fetch(`${gateway.origin}/e/${id}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        signal: AbortSignal.timeout(patience)
      })
      expect(answer.status).toBe(200)
      return (await answer.json()) as { request_id: string }
    }
    const costly = JSON.stringify({ a: list(90_000, () => "9".repeat(20)), text: "abcdefgh".repeat(4_000) })
    await post(source.id, "{}")
    const decided = async (): Promise<number> => {
      await heldMs()
      await meanwhile(
        () => post(plain.id, "{}"),
        async () => {
          const sent = await Promise.all(list(2, () => post(source.id, costly)))
          for (const { request_id } of sent) {
            await gateway.eventually("each connection has decided", async () => {
              const [row] = await gateway.sql(
                `select (select count(*) from ignored_events where request_id = $1)::int as ignored,
                (select count(*) from events where request_id = $1)::int as events,
                (select count(*) from pending_routes where request_id = $1)::int as pending`,
                [request_id]
              )
              return row.pending === 0 && row.ignored + row.events === 100 ? true : null
            })
          }
        }
      )
      return (await heldMs()).processorMs
    }
    expect(await leastMsOf(boundMs, decided)).toBeLessThan(boundMs())
  })
})
