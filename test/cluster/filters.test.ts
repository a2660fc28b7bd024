import { createHash, randomBytes } from "node:crypto"
import { expect } from "vitest"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"

type Process = "a" | "b"

const changes = 400

/** The session of an owner, by which filters are written. */
const session = async (gateways: Gateways<Process>): Promise<string> => {
  const token = `ses_${randomBytes(32).toString("hex")}`
  await gateways.query(
    `with who as (
      insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
      values ('usr_owner', 'https://issuer.test', 'owner', 'owner@example.com', true, 'owner', now(), now()) returning id
    ), member as (
      insert into memberships select $1, id, 'owner', now() from who
    ) select from who`,
    [demoTeam]
  )
  await gateways.query("insert into sessions values ($1, 'usr_owner', $2, now(), now() + interval '1 hour')", [
    createHash("sha256").update(token).digest("hex"),
    demoTeam
  ])
  return token
}

/*
 * Two sources link one filter, which changes again and again, now by one process and now by the other. What is posted the moment
 * that a change has returned, to either source on either process, is judged by it.
 */
it("A changed filter is used by both processes at once, in all of 400 changes", async ({ running }) => {
  const gateways = await running({ a: "all", b: "all" })
  const token = await session(gateways)
  const processes = ["a", "b"] as const
  const change = async (process: Process, method: string, path: string, body: object) => {
    const answer = await gateways.call(process, method, `/v1${path}`, {
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    expect(answer.status, answer.body).toBe(200)
    return JSON.parse(answer.body) as { readonly id: string }
  }
  const conditions = (rule: number) => ({ conditions: { body: { rule } } })
  const filter = await change("a", "POST", "/filters", { name: "changing", ...conditions(0) })
  const destination = await gateways.api("a", "POST", "/destinations", {
    name: "nowhere",
    type: "MOCK_API",
    config: {}
  })
  const sources: Array<string> = []
  for (const name of ["one", "two"]) {
    const source = await gateways.api("a", "POST", "/sources", { name })
    const rules = [{ type: "filter" as const, filter_id: filter.id }]
    await gateways.api("a", "POST", "/connections", {
      name,
      source_id: source.id,
      destination_id: destination.id,
      rules
    })
    sources.push(source.id)
  }
  const post = async (process: Process, source: string, rule: number, n: string): Promise<void> => {
    const answer = await gateways.call(process, "POST", `/e/${source}`, {
      headers: { "content-type": "application/json", "webhook-id": n },
      body: JSON.stringify({ rule })
    })
    expect(answer.status).toBe(200)
  }
  for (let state = 1; state <= changes; state++) {
    await change(processes[state % 2]!, "PATCH", `/filters/${filter.id}`, conditions(state))
    // One that this state lets through, and one that the state before it did.
    await Promise.all(
      processes.flatMap((process, place) => {
        const source = sources[(state + place) % 2]!
        return [
          post(process, source, state, `${state}-new-${process}`),
          post(process, source, state - 1, `${state}-old-${process}`)
        ]
      })
    )
  }
  const stale = await gateways.query(
    `select external_id from requests
     where (split_part(external_id, '-', 2) = 'new') <> (events_count = 1 and ignored_count = 0)`
  )
  expect(stale).toEqual([])
  const [all] = await gateways.query("select count(*)::int4 as n from requests")
  expect(all).toEqual({ n: changes * 4 })
})
