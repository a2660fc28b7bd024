import { expect } from "vitest"
import type { Body } from "../../../../test/support/Gateway.ts"
import { it as cliIt } from "./it.ts"

/** `listen` against the gateway itself. */

/** One restarts it. */
const it = cliIt.extend("settings", { scope: "file" }, {})

const told = (line: string): Body => JSON.parse(line)
const is = (type: string) => (line: string) => line.includes(`"type":"${type}"`)

it("Tunnel delivers a source's filtered events to a local app and returns its responses", async ({
  gateway,
  starting,
  target
}) => {
  const words = ["listen", String(target.port), "--source", "tunnelled", "--create", "--path", "/hooks", "--json"]
  const listening = starting([...words, "--filter", '{"body":{"type":"wanted"}}'])
  const { connection_id, destination_id, source_id, url } = told(await listening.line(is("listening")))
  await listening.line(is("ready"))
  const post = async (body: string): Promise<string> => {
    const headers = { "content-type": "application/json" }
    const answer = await fetch(`${gateway.origin}/e/${source_id}/orders?x=1`, { method: "POST", headers, body })
    return ((await answer.json()) as Body).request_id
  }
  expect(url).toContain(`/e/${source_id}`)
  const wanted = await post('{"type":"wanted"}')
  const unwanted = await post('{"type":"unwanted"}')
  const delivered = told(await listening.line(is("delivered")))
  expect(delivered).toMatchObject({
    request_id: wanted,
    status: 200,
    error: null,
    method: "POST",
    path: "/hooks/orders?x=1"
  })
  expect(target.received.map(({ body, url }) => [url, body.toString()])).toEqual([
    ["/hooks/orders?x=1", '{"type":"wanted"}']
  ])
  const event = await gateway.eventually("it is recorded", async () => {
    const { events } = await gateway.api("GET", `/requests/${wanted}/trace`)
    return events[0]?.status === "SUCCESSFUL" ? events[0] : null
  })
  expect(event).toMatchObject({
    connection_id,
    destination_id,
    response_status: 200,
    cli_id: expect.stringMatching(/^cli_/)
  })
  expect((await gateway.traced(unwanted)).counts).toMatchObject({ events: 0, ignored_events: 1 })
  expect((await listening.interrupt()).code).toBe(0)

  // The next command uses the existing source, with the settings of its own command line.
  const again = starting([...words])
  expect(told(await again.line(is("listening")))).toMatchObject({ connection_id, destination_id, source_id })
  await again.line(is("ready"))
  expect(told(await (await post("{}"), again.line(is("delivered"))))).toMatchObject({ status: 200 })
  // Another one of the same name takes over.
  const third = starting([...words])
  await third.line(is("ready"))
  expect(await again.ended).toMatchObject({ code: 1, complained: expect.stringContaining("another listener") })
  expect((await third.interrupt()).code).toBe(0)
})

it("Tunnel loses no event when the gateway restarts", async ({ gateway, starting, target }) => {
  const listening = starting(["listen", String(target.port), "--source", "restarted", "--create", "--json"])
  const { source_id } = told(await listening.line(is("listening")))
  await listening.line(is("ready"))
  const post = (n: number) => fetch(`${gateway.origin}/e/${source_id}`, { method: "POST", body: String(n) })
  for (let n = 0; n < 50; n++) expect((await post(n)).status).toBe(200)
  await gateway.restart("SIGKILL")
  for (let n = 50; n < 100; n++) expect((await post(n)).status).toBe(200)
  const all = await gateway.eventually("all have come", async () => {
    const bodies = new Set(target.received.map(({ body }) => body.toString()))
    return bodies.size === 100 ? bodies : null
  })
  expect([...all].map(Number).toSorted((left, right) => left - right)).toEqual(Array.from({ length: 100 }, (_, n) => n))
  await gateway.eventually("all are recorded", async () => {
    const { total } = await gateway.api(
      "GET",
      `/events/count?source_id=${source_id}&status=SUCCESSFUL` as "/events/count"
    )
    return total === 100 ? true : null
  })
})

it("Tunnel ends when its destination is deleted", async ({ gateway, starting, target }) => {
  const listening = starting(["listen", String(target.port), "--source", "gone", "--create", "--json"])
  const { destination_id } = told(await listening.line(is("listening")))
  await listening.line(is("ready"))
  await gateway.api("DELETE", `/destinations/${destination_id}` as "/destinations/{id}")
  expect(await listening.ended).toMatchObject({ code: 4 })
})
