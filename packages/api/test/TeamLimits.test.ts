import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { SqlClient } from "effect/sql"
import { resources } from "@tidegate/resources/Resources"
import { teamLimits } from "@tidegate/resources/TeamLimits"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { call, layer as server, teams } from "./ControlServer.ts"

const team = teams.b.id
const left = 5
const asked = 20

let made = 0
const unique = (what: string): string => `${what}-${++made}`

/** A session of an owner of the team: keys may not write filters. */
const session = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [user, token] = [unique("usr"), `ses_${randomBytes(32).toString("hex")}`]
  yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
    values (${user}, 'https://issuer.test', ${user}, ${`${user}@example.com`}, true, ${user}, now(), now())`
  yield* sql`insert into memberships values (${team}, ${user}, 'owner', now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${user}, ${team}, now(), now() + interval '1 hour')`
  return token
})

type Write = (method: string, path: string, body?: object) => ReturnType<typeof call>
interface Places {
  readonly source_id: string
  readonly destination: string
}

const code = "addHandler('transform', (request) => request)"
const steps = [{ id: "only_paid", kind: "filter", config: { conditions: { body: { status: "paid" } } } }]
const edges = [{ source_type: "trigger", target_step_id: "only_paid" }]
const condition = { conditions: { body: { a: 1 } } }
const request = { provider_key: "http", action_key: "request", inputs: { url: "https://ledger.test/" } }

/** Every way in which one comes to be, each of a name of its own. */
const ways: { readonly [plural: string]: (write: Write, places: Places) => ReadonlyArray<ReturnType<Write>> } = {
  sources: (write) => [
    write("POST", "/sources", { name: unique("shop") }),
    write("PUT", "/sources", { name: unique("shop") }),
    write("PUT", "/workflows/aggregate", {
      source: { name: unique("shop") },
      workflow: { name: unique("flow"), steps, edges }
    })
  ],
  destinations: (write) => [
    write("POST", "/destinations", { name: unique("target"), url: "https://target.test/" }),
    write("PUT", "/destinations", { name: unique("target"), url: "https://target.test/" })
  ],
  connections: (write, { destination, source_id }) => [
    write("POST", "/connections", { name: unique("link"), source_id, destination_id: destination }),
    write("PUT", "/connections", { name: unique("link"), source_id, destination_id: destination })
  ],
  transformations: (write, { destination, source_id }) => [
    write("POST", "/transformations", { name: unique("code"), code }),
    write("PUT", "/transformations", { name: unique("code"), code }),
    write("POST", "/connections", {
      name: unique("link"),
      source_id,
      destination_id: destination,
      rules: [{ type: "transform", transformation: { name: unique("inline"), code } }]
    })
  ],
  workflows: (write, { destination, source_id }) => [
    write("POST", "/workflows", { name: unique("flow"), source_id }),
    write("PUT", "/workflows", { name: unique("flow"), source_id, steps, edges }),
    write("PUT", "/workflows/aggregate", {
      source: { name: unique("shop") },
      workflow: { name: unique("flow"), steps, edges }
    }),
    write("POST", "/workflow-templates/normalised-order/instantiate", {
      name: unique("flow"),
      source_id,
      bindings: { destination }
    })
  ],
  filters: (write) => [
    write("POST", "/filters", { name: unique("filter"), ...condition }),
    write("PUT", "/filters", { name: unique("filter"), ...condition })
  ],
  actions: (write, { source_id }) => [
    write("POST", "/actions", { name: unique("action"), ...request }),
    write("PUT", "/actions", { name: unique("action"), ...request }),
    write("PUT", "/workflows/aggregate", {
      source_id,
      actions: [{ ref: "one", name: unique("action"), ...request }],
      workflow: { name: unique("flow") }
    })
  ]
}

/** As many of the team's as there is room for, but for so many. */
const crowd = Effect.fnUntraced(function* (plural: string, count: number) {
  const sql = yield* SqlClient.SqlClient
  const columns = {
    sources: ["type, config", "'WEBHOOK', '{}'"],
    destinations: ["type, config", "'HTTP', '{}'"],
    connections: [
      "source_id, destination_id, rules",
      "(select min(id) from sources where team_id = $1), (select min(id) from destinations where team_id = $1), '[]'"
    ],
    transformations: ["code, code_hash", "'', ''"],
    workflows: ["status, version, steps, edges, definition_hash", "'draft', 1, '[]', '[]', ''"],
    filters: ["conditions, hash", "'{}', ''"],
    actions: ["provider_key, action_key, config, version", "'http', 'request', '{}', 1"]
  }[plural]!
  yield* sql.unsafe(
    `insert into ${plural} (id, team_id, name, created_at, updated_at, ${columns[0]})
     select 'crowd' || n, $1, 'crowd' || n, now(), now(), ${columns[1]} from generate_series(1, $2::int) n`,
    [team, count]
  )
})

const countOf = Effect.fnUntraced(function* (plural: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql.unsafe<{ count: number }>(
    `select count(*)::int4 as count from ${plural} where team_id = $1 and deleted_at is null`,
    [team]
  )
  return row!.count
})

const bounded = resources.map(({ plural }) => [plural, teamLimits[plural]!] as const)

layer(server, { excludeTestServices: true })("Limits on a team's resources", (it) => {
  it.effect("Limits on a team's resources are declared for every limited kind", () =>
    Effect.sync(() => {
      expect(Object.fromEntries(bounded.map(([plural, { most }]) => [plural, most]))).toEqual({
        sources: 10_000,
        destinations: 10_000,
        connections: 20_000,
        transformations: 1_000,
        workflows: 1_000,
        filters: 500,
        actions: 1_000
      })
    })
  )

  for (const [plural, { code, most: count }] of bounded) {
    it.effect(
      `Limit on ${plural} holds for every way to create them, also when the last ones are created at the same time`,
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const key = yield* session
          const write: Write = (method, path, body) =>
            call(method, path, { key, ...(body === undefined ? {} : { body }) })
          const named = { name: unique("place") }
          const places = {
            source_id: (yield* write("POST", "/sources", named)).body.id,
            destination: (yield* write("POST", "/destinations", { ...named, url: "https://target.test/" })).body.id
          }
          yield* crowd(plural, count - left - (yield* countOf(plural)))
          const calls: Array<ReturnType<Write>> = []
          while (calls.length < asked) calls.push(...ways[plural]!(write, places))
          const answers = yield* Effect.all(calls, { concurrency: "unbounded" })
          const refused = answers.filter(({ status }) => status === 409)
          const kept = answers.filter(({ status }) => status === 200 || status === 201)
          expect([kept.length, refused.length]).toEqual([left, answers.length - left])
          for (const { body } of refused) expect(body).toMatchObject({ code, data: { limit: count, resource: plural } })
          expect(yield* countOf(plural)).toBe(count)

          // Each way is refused by itself; what is there can be changed, and leaves room when it goes.
          for (const way of ways[plural]!(write, places)) expect((yield* way).body).toMatchObject({ code })
          const { models } = (yield* write("GET", `/${plural}?order_by=created_at&dir=desc&limit=${left}`)).body
          expect((yield* write("PATCH", `/${plural}/${models[0].id}`, { name: unique("renamed") })).status).toBe(200)
          // A transformation that a connection uses stays until the connection goes.
          yield* sql`update connections set deleted_at = now() where team_id = ${team} and name like 'link-%' and ${plural} = 'transformations'`
          expect((yield* write("DELETE", `/${plural}/${models[0].id}`)).status).toBe(200)
          expect((yield* ways[plural]!(write, places)[0]!).status).toBeLessThan(300)
          yield* sql.unsafe(`delete from ${plural} where id like 'crowd%'`)
        })
    )
  }
})
