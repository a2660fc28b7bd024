import { join } from "node:path"
import { describe, expect } from "vitest"
import { admin } from "../support/Admin.ts"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"

/** `npm run admin -- project-keys`, as an operator calls it: beside a gateway that runs, and where none does. */

type One = Gateways<"all">

const teamKey = "gwk_cluster_test_key"

const keyOf = async (gateways: One): Promise<string> => {
  const { body: session } = await gateways.call("all", "POST", "/v1/auth/demo/login")
  const { token } = JSON.parse(session) as { token: string }
  const { body } = await gateways.call("all", "POST", "/v1/project-api-keys", {
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "key", scopes: ["control:read"] })
  })
  return (JSON.parse(body) as { data: { api_key: string } }).data.api_key
}

const status = async (gateways: One, key: string) =>
  (await gateways.call("all", "GET", "/v1/sources", { headers: { authorization: `Bearer ${key}` } })).status

describe("Operators' command for project keys", () => {
  it("The pepper command adds newer peppers, with or without a gateway, and all keys stay valid", async ({
    place,
    running
  }) => {
    const gateways: One = await running({ all: "all" })
    const settings = { TIDEGATE_HOME: join(place.folder, "home"), DATABASE_URL: place.databaseUrl }
    const run = (...words: ReadonlyArray<string>) => admin(settings, "project-keys", "pepper", ...words)
    expect(await run()).toMatchObject({ code: 0, said: "there are no keys yet\n" })
    const first = await keyOf(gateways)
    expect(await run()).toMatchObject({ code: 0, said: "pepper 1: 1 keys\n" })
    expect(await run("--renew")).toMatchObject({
      code: 0,
      said: "keys are made by pepper 2 from now on\npepper 1: 1 keys\n"
    })
    const second = await keyOf(gateways)
    expect(await run()).toMatchObject({ said: "pepper 2: 1 keys\npepper 1: 1 keys\n" })
    expect([await status(gateways, first), await status(gateways, second)]).toEqual([200, 200])

    await gateways.process("all").end("SIGTERM")
    expect(await run("--renew")).toMatchObject({ code: 0, said: expect.stringContaining("by pepper 3 from now on") })
    await gateways.process("all").start()
    const third = await keyOf(gateways)
    for (const key of [first, second, third]) expect(await status(gateways, key)).toBe(200)
    expect(await run()).toMatchObject({ said: "pepper 3: 1 keys\npepper 2: 1 keys\npepper 1: 1 keys\n" })
  })

  it("The cutover command enforces scopes only for the teams whose keys allow it", async ({ place, running }) => {
    const gateways: One = await running({ all: "all" })
    const settings = { TIDEGATE_HOME: join(place.folder, "home"), DATABASE_URL: place.databaseUrl }
    const run = (...words: ReadonlyArray<string>) => admin(settings, "project-keys", "cutover", ...words)
    expect(await run()).toMatchObject({ code: 0, said: "all API keys of teams obey their scopes already\n" })

    // As in an installation that is older than scopes, with a key that would not be given all that it does.
    await gateways.query(
      "update teams set key_policy_cutover = 'pending' where id in (select team_id from project_secrets)"
    )
    await gateways.query("insert into teams (id, name, key_policy_cutover) values ('tm_other', 'Other', 'pending')")
    const [{ id: team }] = (await gateways.query("select team_id as id from project_secrets")) as [{ id: string }]
    await gateways.query(
      `insert into key_audit (entry, team_id, key_id, began_at, route_key, permission, decision, reason, count, first_seen_at, last_seen_at, expires_at)
        values (gen_random_uuid(), $1, 'pak_legacy_x', now(), 'POST:/v1/filters', 'edit', 'allowed', 'legacy_shadow_denied', 3, now(), now(), now() + interval '1 day')`,
      [team]
    )
    const refused = ["0", "-3", "31", "99999999"].map(async (days) => {
      const { code, complained, said } = await run("--days", days)
      expect(code, days).toBe(1)
      expect(said + complained, days).toContain("a whole number from 1 to 30")
    })
    const wrong = [["--days", "x"], ["--nosuch"], ["extra"]].map(async (words) =>
      expect((await run(...words)).code, words.join(" ")).toBe(1)
    )
    await Promise.all([...refused, ...wrong])
    const pending = async () =>
      (await gateways.query("select id from teams where key_policy_cutover = 'pending' order by id")).map(
        (row) => (row as { id: string }).id
      )
    expect(await pending(), "nothing of this was carried out").toEqual([team, "tm_other"].toSorted())

    const part = await run()
    expect(part).toMatchObject({ code: 1 })
    expect(part.said).toBe(
      `${team}\tPOST:/v1/filters\t3\ntm_other: its API key obeys its scopes from now on\n` +
        `left as they are: ${team}; their API keys would have been refused what is listed above\n`
    )
    expect(await pending()).toEqual([team])

    await gateways.process("all").end("SIGTERM")
    expect(await run("--force")).toMatchObject({
      code: 0,
      said: `${team}\tPOST:/v1/filters\t3\n${team}: its API key obeys its scopes from now on\n`
    })
    expect(await pending()).toEqual([])
    await gateways.process("all").start()
    expect(await status(gateways, teamKey)).toBe(200)
  })
})
