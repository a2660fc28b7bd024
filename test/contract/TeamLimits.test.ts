import { afterAll, beforeAll, expect, it } from "vitest"
import { Gateway } from "../support/Gateway.ts"

/** What an operator sets holds wherever a row comes to be. */
let gateway: Gateway
beforeAll(async () => {
  gateway = await Gateway.start({
    TIDEGATE_MOST_SOURCES: "2",
    TIDEGATE_MOST_TRANSFORMATIONS: "1",
    TIDEGATE_MOST_WORKFLOW_VERSIONS: "3"
  })
})
afterAll(() => gateway.close())

const code = "addHandler('transform', (request) => request)"
const beyond = (resource: string, limit: number) => ({
  status: 409,
  body: { code: "LIMIT_EXCEEDED", data: { resource, limit } }
})

it("A team is refused a source above its limit, and may create one again after a deletion", async () => {
  const [first, second] = [await gateway.source(), await gateway.source()]
  expect(await gateway.call("POST", "/sources", { name: "third" })).toMatchObject(beyond("sources", 2))
  const bin = await gateway.call("POST", "/public-bins")
  const claim = await fetch(`${gateway.origin}/v1/public-bins/${bin.body.id}/claim`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "x-bin-token": bin.body.token }
  })
  expect({ status: claim.status, body: await claim.json() }).toMatchObject(beyond("sources", 2))
  await gateway.api("DELETE", `/sources/${first.id}` as "/sources/{id}")
  const third = await gateway.source()
  expect([second.id, third.id]).not.toContain(first.id)
})

it("A transformation inside a rule counts toward the limit, and its connection is refused", async () => {
  const [source] = (await gateway.api("GET", "/sources")).models
  const destination = await gateway.destination({ url: "http://127.0.0.1:9/" })
  const link = (name: string) =>
    gateway.call("POST", "/connections", {
      name,
      source_id: source!.id,
      destination_id: destination.id,
      rules: [{ type: "transform", transformation: { name, code } }]
    })
  expect((await link("one")).status).toBe(200)
  expect(await link("two")).toMatchObject(beyond("transformations", 1))
  expect(await gateway.sql("select name from connections")).toEqual([{ name: "one" }])
})

it("Unused versions of a workflow are removed for the next one", async () => {
  const made = await gateway.call("POST", "/workflows", {
    name: "flow",
    status: "draft",
    source_id: (await gateway.api("GET", "/sources")).models[0]!.id
  })
  expect(made).toMatchObject({ status: 200 })
  for (let version = 1; version < 7; version++) {
    const { id } = made.body
    expect((await gateway.call("PATCH", `/workflows/${id}`, { name: `flow ${version}`, version })).status).toBe(200)
  }
  const versions = await gateway.sql("select version from workflow_versions order by version")
  // The first has the definition of the others.
  expect(versions.length).toBe(3)
})
