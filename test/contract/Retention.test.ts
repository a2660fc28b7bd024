import { describe, expect } from "vitest"
import { type Table, tables } from "../../packages/storage/src/Tables.ts"
import type { Rules } from "../support/Contract.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/** What is answered for records that have outlived their payload, and whose each stored row is. */

const code = `addHandler("transform", (request) => ({ ...request, body: { made: true } }))`

const it = gatewayIt
  /** A rule that transforms. */
  .extend("transforming", ({ gateway }) => async () => {
    const { id } = await gateway.api("POST", "/transformations", { name: gateway.name("transformation"), code })
    return { type: "transform", transformation_id: id } as const
  })
  /** A request that has become an event, which has been delivered. */
  .extend("deliver", ({ gateway }) => async (rules: Rules = []) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ path: "/hooks" }, "MOCK_API")
    await gateway.connection(source, destination, rules)
    const sent = await fetch(`${gateway.origin}/e/${source.id}/orders?x=1`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"a":1}'
    })
    const { request_id } = (await sent.json()) as { request_id: string }
    const trace = await gateway.eventually("the event was delivered", async () => {
      const found = await gateway.traced(request_id)
      return found.attempts.length === 0 ? null : found
    })
    return { source, request: request_id, event: trace.events[0]!.id }
  })
  /** Takes the payloads of a request as retention does: by the declaration of the tables. */
  .extend("prune", ({ gateway }) => async (request: string): Promise<void> => {
    for (const [name, table] of Object.entries<Table>(tables)) {
      // Of runs there are none: no workflow is there.
      if (table.kind !== "grows" || name.startsWith("workflow_")) continue
      const by = name === "requests" ? "id" : "request_id"
      if (table.keptAs === "payload") await gateway.sql(`delete from ${name} where ${by} = $1`, [request])
      else if (table.payload !== undefined) {
        const set = Object.entries(table.payload).map(([column, value]) => `${column} = ${value}`)
        await gateway.sql(`update ${name} set ${set.join(", ")} where ${by} = $1`, [request])
      }
    }
  })

describe("Record without its payload", () => {
  it.for<[name: string, isTransformed: boolean]>([
    ["a plain event", false],
    ["a transformed event", true]
  ])(
    "A record without its payload has null data, a body of 404 and a retry of 409: %s",
    async ([, isTransformed], { deliver, gateway, prune, transforming }) => {
      const { event, request, source } = await deliver(isTransformed ? [await transforming()] : [])
      expect((await gateway.api("GET", `/events/${event}`)).data?.request.path).toBe("/orders")
      await prune(request)

      expect(await gateway.api("GET", `/requests/${request}`)).toMatchObject({
        id: request,
        status: "accepted",
        data: null
      })
      expect(await gateway.api("GET", `/events/${event}`)).toMatchObject({
        id: event,
        status: "SUCCESSFUL",
        data: null
      })
      const listed = await gateway.api("GET", `/requests?source_id=${source.id}&include=data`)
      expect(listed.models).toMatchObject([{ id: request, data: null }])
      const events = await gateway.api("GET", `/events?source_id=${source.id}&include=data`)
      expect(events.models).toMatchObject([{ id: event, data: null }])
      const trace = await gateway.api("GET", `/requests/${request}/trace`)
      expect(trace.attempts).toMatchObject([{ body: null, response_headers: null, status: "SUCCESSFUL" }])

      expect(await gateway.call("GET", `/requests/${request}/body`)).toMatchObject({
        status: 404,
        body: { code: "NOT_FOUND" }
      })
      expect(await gateway.call("POST", `/events/${event}/retry`)).toMatchObject({
        status: 409,
        body: { code: "PAYLOAD_UNAVAILABLE" }
      })
      expect(await gateway.sql("select 1 from events where retry_parent_event_id = $1", [event])).toEqual([])
    }
  )
})

describe("Stored rows", () => {
  it("Stored rows contain their team in every table that belongs to teams", async ({
    deliver,
    gateway,
    transforming
  }) => {
    const { event, source } = await deliver([{ type: "deduplicate", window: 60_000 }])
    await deliver([await transforming()])
    await gateway.api("POST", `/events/${event}/retry`)
    // What waits: a delivery that is delayed, and one of a paused connection.
    const waiting = await gateway.destination({ path: "/later" }, "MOCK_API")
    await gateway.connection(source, waiting, [{ type: "delay", delay: 3_600_000 }])
    const slow = await gateway.connection(source, waiting, [{ type: "deduplicate", window: 60_000 }])
    await gateway.api("PUT", `/connections/${slow.id}/pause`)
    await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    await gateway.eventually("both wait", async () => {
      const rows = await gateway.sql("select 1 from deliveries")
      return rows.length < 2 ? null : rows
    })
    for (const [name, { team }] of Object.entries<Table>(tables)) {
      if (team === null) continue
      expect([name, await gateway.sql(`select 1 from ${name} where ${team} is null or ${team} = ''`)]).toEqual([
        name,
        []
      ])
    }
    for (const name of ["deliveries", "dedupe_keys", "events", "event_data", "counted"]) {
      expect((await gateway.sql(`select 1 from ${name}`)).length).toBeGreaterThan(0)
    }
  })
})
