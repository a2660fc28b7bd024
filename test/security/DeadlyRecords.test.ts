import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import { waitUntil } from "../support/Waiting.ts"
import { Deadly, heavy } from "./deadly.ts"

/** Deliveries, routes and bulk operations that end the process: it goes on, and so does everybody else's work. */

let deadly: Deadly
beforeAll(async () => {
  deadly = await Deadly.start()
})
afterAll(() => deadly.close())

const eventsOf = async (source: string) =>
  (await deadly.gateways.query(
    `select e.id, e.state, (select error_code from attempts a where a.event_id = e.id order by attempt_number desc limit 1) as code
     from events e where e.source_id = $1 order by e.id`,
    [source]
  )) as ReadonlyArray<{ readonly id: string; readonly state: string; readonly code: string | null }>

const haveEnded = async (source: string, count: number): Promise<boolean> => {
  const events = await eventsOf(source)
  return events.length === count && events.every(({ state }) => state !== "PENDING")
}

const resultsOf = async (source: string): Promise<ReadonlyArray<string>> =>
  (await eventsOf(source)).map(({ code, state }) => `${state} ${code}`).toSorted((a, b) => a.localeCompare(b))

const bulkOf = async (id: string) =>
  (await deadly.gateways.query("select status, error from bulk_operations where id = $1", [id]))[0]!

describe("Process with a heap of 512 MB", () => {
  it("A delivery that ends the process three times fails, its neighbours are delivered, and it can be retried", async () => {
    const source = await deadly.route("delivery")
    deadly.poison = "poison"
    deadly.isHolding = true
    await Promise.all([{ heavy }, { heavy }, {}].map((body) => deadly.post(source, body)))
    await waitUntil("they are under way", () => deadly.bodies.length === 3)
    await deadly.postDeadly(source, { heavy, poison: 1 })
    const ends = await deadly.livesUntil("the delivery is set aside", () => haveEnded(source, 4))
    expect(ends).toBe(3)
    const done = "SUCCESSFUL null"
    expect(await resultsOf(source)).toEqual(["FAILED PROCESS_ENDED", done, done, done])
    deadly.poison = null
    const failed = (await eventsOf(source)).find(({ state }) => state === "FAILED")!
    await deadly.api("POST", `/events/${failed.id}/retry`)
    await waitUntil(
      "the retry has gone out",
      async () => (await resultsOf(source)).filter((one) => one === done).length === 4
    )
  })

  it("A small delivery may end the process a few more times, because it is recorded only after a death", async () => {
    const source = await deadly.route("small")
    deadly.poison = "venom"
    await Promise.all([{ n: 1 }, { n: 2 }].map((body) => deadly.post(source, body)))
    await deadly.postDeadly(source, { venom: 1 })
    const ends = await deadly.livesUntil("the delivery is set aside", () => haveEnded(source, 3))
    expect(await resultsOf(source)).toEqual(["FAILED PROCESS_ENDED", "SUCCESSFUL null", "SUCCESSFUL null"])
    // Three in the minute after another end, when it is written down from the first time on.
    expect(ends).toBeGreaterThanOrEqual(3)
    expect(ends).toBeLessThan(10)
    deadly.poison = null
  })

  it("A request whose routing ends the process three times is ignored and can be replayed", async () => {
    const code = `addHandler("transform", (request) => { while (request.body.poison) {} return request })`
    const transformation = await deadly.api("POST", "/transformations", { name: "endless", code })
    const source = await deadly.route("route", [{ type: "transform", transformation_id: transformation.id }])
    await Promise.all([{ heavy, poison: 1 }, { heavy }, {}].map((body) => deadly.post(source, body)))
    const [request] = await deadly.gateways.query(
      "select id from requests where source_id = $1 and position('poison' in convert_from(body, 'utf8')) > 0",
      [source]
    )
    const [connection] = await deadly.gateways.query("select id from connections where source_id = $1", [source])
    const route = derivedId(prefixes.event, String(request!["id"]), String(connection!["id"]))
    const ignored = () =>
      deadly.gateways.query("select cause, meta from ignored_events where request_id = $1", [request!["id"]])
    const ends = await deadly.livesUntil("the route is set aside", async () => {
      await deadly.killsAt("route", route)
      return (await ignored()).length > 0 && (await haveEnded(source, 2))
    })
    expect(await ignored()).toMatchObject([{ cause: "PROCESS_ENDED" }])
    expect(ends).toBe(3)
    expect(await resultsOf(source)).toEqual(["SUCCESSFUL null", "SUCCESSFUL null"])
    const mended = `addHandler("transform", (request) => request)`
    await deadly.api("PUT", `/transformations/${transformation.id}`, { name: "endless", code: mended })
    await deadly.api("POST", "/ignored_events/bulk_operations", { cause: "PROCESS_ENDED", all: true })
    await waitUntil("the request is an event", () => haveEnded(source, 3))
    expect(new Set(await resultsOf(source))).toEqual(new Set(["SUCCESSFUL null"]))
  })

  it("The process survives a hundred large transformation results and code that uses all memory", async () => {
    const code = `addHandler("transform", (request) => ({ ...request, body: { text: "x".repeat(1_000_000) } }))`
    const transformation = await deadly.api("POST", "/transformations", { name: "large", code })
    const source = await deadly.route("results", [{ type: "transform", transformation_id: transformation.id }])
    deadly.process.takeEnds()
    await Promise.all(Array.from({ length: 100 }, (_, n) => deadly.post(source, { n })))
    const isOver = async () => deadly.process.pid === null || (await haveEnded(source, 100))
    await waitUntil("all have gone out", isOver, { patienceMs: 200_000, everyMs: 200 })
    expect(deadly.process.takeEnds()).toEqual([])
    expect(new Set(await resultsOf(source))).toEqual(new Set(["SUCCESSFUL null"]))
    const all = `addHandler("transform", () => { const all = []; for (;;) all.push("x".repeat(1e6) + all.length) })`
    const greedy = await deadly.api("POST", "/transformations", { name: "greedy", code: all })
    const other = await deadly.route("greedy", [{ type: "transform", transformation_id: greedy.id }])
    await Promise.all(Array.from({ length: 5 }, (_, n) => deadly.post(other, { n })))
    await waitUntil("all are ignored", async () => {
      const ignored = await deadly.gateways.query("select cause from ignored_events where source_id = $1", [other])
      return ignored.length === 5 && ignored.every(({ cause }) => cause === "TRANSFORMATION_FAILED")
    })
    expect(deadly.process.takeEnds()).toEqual([])
  })

  it("A bulk operation that ends the process three times fails with its reason, and others complete", async () => {
    deadly.status = 500
    const [large, small] = [await deadly.route("large"), await deadly.route("another")]
    for (let n = 0; n < 60; n++) await deadly.post(large, { n })
    for (let n = 0; n < 3; n++) await deadly.post(small, { n })
    await waitUntil("all have failed", async () => (await haveEnded(large, 60)) && (await haveEnded(small, 3)))
    deadly.status = 200
    const [guilty, other] = await Promise.all([
      deadly.api("POST", "/events/bulk_operations", { source_id: large, status: "FAILED", rate: 1 }),
      deadly.api("POST", "/events/bulk_operations", { source_id: small, status: "FAILED", rate: 1 })
    ])
    const ends = await deadly.livesUntil("both are at their end", async () => {
      await deadly.killsAt("bulk", guilty.id)
      const both = [await bulkOf(guilty.id), await bulkOf(other.id)]
      return both.every(({ status }) => status === "FAILED" || status === "COMPLETED")
    })
    expect(await bulkOf(guilty.id)).toMatchObject({ status: "FAILED", error: { code: "PROCESS_ENDED" } })
    expect(ends).toBe(3)
    expect(await bulkOf(other.id)).toMatchObject({ status: "COMPLETED", error: null })
    // Asked for again it is another one, of what the first has left.
    const again = await deadly.api("POST", "/events/bulk_operations", { source_id: large, status: "FAILED" })
    await waitUntil("the rest is retried", async () => (await bulkOf(again.id))["status"] === "COMPLETED")
    await waitUntil("all are resolved", async () => {
      const [row] = await deadly.gateways.query(
        "select count(*)::int4 as count from events where source_id = $1 and state = 'FAILED' and resolved_at is null",
        [large]
      )
      return row!["count"] === 0
    })
  })
})
