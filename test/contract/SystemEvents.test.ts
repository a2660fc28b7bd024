import { expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** The gateway's own events, from a failing target to the target of the system source. */

const it = gatewayIt.extend("system", { scope: "file" }, async ({ gateway }) => ({
  source: await gateway.api("POST", "/sources", { name: gateway.name("gateway"), type: "SYSTEM" })
}))

it("A destination that fails is told of at the target of the system source, and what follows from that makes no events", async ({
  gateway,
  startTarget,
  system: { source: system }
}) => {
  const alarms = await startTarget()
  const broken = await startTarget((response) => void response.writeHead(500).end("no"))
  const route = await gateway.route(broken)
  // The system events also go back to the broken destination, straight and through an ordinary source.
  const back = await gateway.destination({ url: `${gateway.origin}/e/${route.source.id}` })
  for (const to of [await gateway.destination({ url: alarms.origin }), route.destination, back]) {
    await gateway.connection(system, to)
  }
  const path = `/e/${route.source.id}`
  expect((await request(gateway.port, { path, body: "{}" })).status).toBe(200)

  const told = await alarms.next(2)
  const bodies = told.map(({ body }) => JSON.parse(body.toString()))
  expect(bodies.map(({ type }): string => type).toSorted()).toEqual(["destination.failing", "event.failed"])
  for (const { data, subject } of bodies) {
    expect(subject).toEqual({ type: "destination", id: route.destination.id, name: route.destination.name })
    expect(data).toMatchObject({ count: 1, error_codes: ["BAD_RESPONSE"] })
  }

  // One request of a sender, two system events straight, and the same two through the source.
  await gateway.eventually("all attempts to deliver to the broken target", async () => {
    const [{ failed }] = await gateway.sql(
      "select count(*)::int as failed from attempts where destination_id = $1 and status = 'FAILED'",
      [route.destination.id]
    )
    return failed === 5 ? true : null
  })
  // What counts is written together with an attempt.
  const [{ left }] = await gateway.sql("select count(*)::int as left from occurrences where team_id = $1", [
    gateway.team
  ])
  expect(left).toBe(0)
  const { models } = await gateway.api("GET", `/issues?destination_id=${route.destination.id}`)
  expect(models).toMatchObject([{ error_code: "BAD_RESPONSE", response_status: 500, status: "open", count: 1 }])
  const requests = await gateway.requests(system.id)
  expect(requests).toHaveLength(2)
})

it("Nobody can send to the system source, and a second one is refused with the id of the first", async ({
  gateway,
  system: { source: system }
}) => {
  expect((await request(gateway.port, { path: `/e/${system.id}`, body: "{}" })).status).toBe(404)
  const second = await gateway.call("POST", "/sources", { name: gateway.name("another"), type: "SYSTEM" })
  expect(second).toMatchObject({ status: 409, body: { code: "RESOURCE_ALREADY_EXISTS", data: { id: system.id } } })
  const deleted = await gateway.call("DELETE", `/sources/${system.id}`)
  expect(deleted).toMatchObject({ status: 409, body: { code: "RESOURCE_IN_USE" } })
  for (const body of [{ type: "WEBHOOK" }, { url: "alarms" }, { config: { auth_type: "BASIC_AUTH" } }]) {
    expect((await gateway.call("PATCH", `/sources/${system.id}`, body)).status).toBe(400)
  }
})
