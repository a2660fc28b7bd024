import { randomBytes } from "node:crypto"
import { describe, expect } from "vitest"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { TunnelClient } from "../support/TunnelClient.ts"
import { eventually, now } from "../support/Waiting.ts"

/** A tunnel ends with what it was opened by, at each process that holds one, wherever that was changed. */

type Processes = Gateways<"all" | "runner" | "edge">

const running = { all: "all", runner: "runner", edge: "edge" } as const
const processes = ["all", "edge"] as const

/** It is looked at once a second; without that, every thirty. */
const soonMs = 20_000

const json = (credential: string) => ({ authorization: `Bearer ${credential}`, "content-type": "application/json" })

interface Opener {
  readonly credential: string
  /** Takes away what the tunnel is open by. */
  readonly end: () => Promise<unknown>
}

interface Key {
  readonly id: string
  readonly api_key: string
}

const ownerOf = async (gateways: Processes): Promise<string> => {
  const { body } = await gateways.call("all", "POST", "/v1/auth/demo/login")
  return (JSON.parse(body) as { token: string }).token
}

const keyOf = async (gateways: Processes, owner: string): Promise<Key> => {
  const answer = await gateways.call("edge", "POST", "/v1/project-api-keys", {
    headers: json(owner),
    body: JSON.stringify({ name: "tunnel", scopes: ["control:read", "tunnel:connect"] })
  })
  expect(answer.status, answer.body).toBe(201)
  return (JSON.parse(answer.body) as { data: Key }).data
}

/** Changes a key at a process that may hold none of its tunnels. */
const changedAt = async (gateways: Processes, owner: string, key: Key, method: string, change?: object) => {
  const { body, status } = await gateways.call("all", method, `/v1/project-api-keys/${key.id}`, {
    headers: json(owner),
    ...(change === undefined ? {} : { body: JSON.stringify(change) })
  })
  expect(status, body).toBe(200)
}

/** A member of the team, signed in. */
const memberOf = async (gateways: Processes): Promise<{ readonly token: string; readonly user: string }> => {
  const [user, token] = [`usr_${randomBytes(8).toString("hex")}`, `ses_${randomBytes(32).toString("hex")}`]
  const [team] = (await gateways.query("select team_id as id from destinations limit 1")) as [{ id: string }]
  await gateways.query(
    `insert into users (id, issuer, subject, name, created_at, updated_at) values ($1, 'https://issuer.test', $1, $1, now(), now())`,
    [user]
  )
  await gateways.query("insert into memberships values ($1, $2, 'member', now())", [team.id, user])
  await gateways.query("insert into sessions values ($1, $2, $3, now(), now() + interval '1 hour')", [
    hashToken(token),
    user,
    team.id
  ])
  return { token, user }
}

type Case = readonly [name: string, code: number, open: (gateways: Processes, owner: string) => Promise<Opener>]

const withKey =
  (method: string, change?: object): Case[2] =>
  async (gateways, owner) => {
    const key = await keyOf(gateways, owner)
    return { credential: key.api_key, end: () => changedAt(gateways, owner, key, method, change) }
  }

const withMember =
  (statement: string): Case[2] =>
  async (gateways) => {
    const { token, user } = await memberOf(gateways)
    return { credential: token, end: () => gateways.query(statement, [user]) }
  }

const cases: ReadonlyArray<Case> = [
  ["its key is revoked", 4401, withKey("DELETE")],
  ["its key is disabled", 4401, withKey("PATCH", { status: "disabled" })],
  ["its key loses the scope", 4403, withKey("PATCH", { scopes: ["control:read"] })],
  ["its session is over", 4401, withMember("update sessions set expires_at = now() where user_id = $1")],
  ["its user leaves the team", 4403, withMember("delete from memberships where user_id = $1")]
]

describe("Tunnels in two processes", () => {
  it("A tunnel ends soon after the credential that opened it, and no other tunnel ends", async ({
    onTestFinished,
    running: start
  }) => {
    const gateways: Processes = await start(running)
    const owner = await ownerOf(gateways)
    const hold = async (by: (typeof processes)[number], key: string): Promise<TunnelClient> => {
      const name = randomBytes(8).toString("hex")
      const destination = await gateways.api("all", "POST", "/destinations", { name, type: "CLI" })
      const client = new TunnelClient(gateways.process(by).origin, destination.id, { key })
      onTestFinished(() => client.drop())
      await client.greeted()
      return client
    }
    const other = await keyOf(gateways, owner)
    const kept = [await hold("all", other.api_key), await hold("edge", other.api_key)]
    for (const [name, code, open] of cases) {
      const { credential, end } = await open(gateways, owner)
      const held = [await hold("all", credential), await hold("edge", credential)]
      const began = now()
      await end()
      for (const client of held) expect((await client.ended()).code, name).toBe(code)
      expect(now() - began, name).toBeLessThan(soonMs)
      // Nobody comes in by it again.
      for (const by of processes) {
        const again = new TunnelClient(gateways.process(by).origin, "des_0", { key: credential })
        onTestFinished(() => again.drop())
        expect(await eventually("it is refused", () => again.refused ?? again.closed?.code ?? null), name).toBe(code)
      }
    }
    for (const client of kept) expect(client.closed).toBeNull()
  })
})
