import { chmod } from "node:fs/promises"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, Logger } from "effect"
import { describe, expect } from "vitest"
import { admin } from "../../../test/support/Admin.ts"
import type { Gateways } from "../../../test/support/Gateways.ts"
import { it as gatewayIt } from "../../../test/support/it.ts"
import { freePort } from "../../../test/support/Ports.ts"
import { loadKeys } from "../src/Bootstrap.ts"
import { checks } from "../src/doctor/Checks.ts"
import { examine } from "../src/doctor/Doctor.ts"
import { settings } from "../src/Settings.ts"

type One = Gateways<"all">

/** What the doctor finds with these settings, without what is fine: the check, its verdict, and the sentence. */
const found = (env: Readonly<Record<string, string>>, ...names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const given = yield* settings
    const chosen = names.length === 0 ? checks : checks.filter(({ name }) => names.includes(name))
    const results = yield* examine(chosen, given, yield* loadKeys(given))
    return results.flatMap(({ check, findings }) =>
      findings.filter(({ verdict }) => verdict !== "fine").map(({ says, verdict }) => `${verdict} ${check}: ${says}`)
    )
  }).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
    Effect.provide([NodeServices.layer, Logger.layer([])]),
    Effect.scoped,
    Effect.runPromise
  )

/** A server for suites may run without these settings, because it is thrown away. */
const withoutThem = [
  "wrong settings: fsync is off: a crash of the server loses acknowledged requests and may destroy the database",
  "wrong settings: full_page_writes is off: a crash of the server may destroy pages of the database"
]

const it = gatewayIt.extend("env", ({ place }) => ({
  TIDEGATE_HOME: join(place.folder, "home"),
  DATABASE_URL: place.databaseUrl
}))

describe("Doctor", () => {
  it("Doctor finds each fault of a database beside a working gateway, and nothing else", async ({ env, running }) => {
    const gateways: One = await running({ all: "all" })
    const off = await gateways.query(
      "select name from pg_settings where name in ('fsync', 'full_page_writes') and setting = 'off'"
    )
    const always = withoutThem.filter((text) => off.some(({ name }) => text.includes(` ${String(name)} is off`)))
    expect(await found(env)).toEqual(always)

    const alter = (action: string) =>
      gateways.query(`do $$ begin execute format('alter database %I ${action}', current_database()); end $$`)
    await alter("set synchronous_commit = off")
    expect(await found(env, "settings")).toEqual([
      ...always,
      "wrong settings: synchronous_commit is off: a crash of the server loses requests that were acknowledged"
    ])
    await alter("reset synchronous_commit")
    expect(await found(env, "settings")).toEqual(always)

    const [last] = await gateways.query("select max(migration_id)::int as id from migrations")
    const wanted = Number(last!["id"])
    await gateways.query("update migrations set migration_id = 9000 where migration_id = $1", [wanted])
    expect(await found(env, "schema")).toEqual([
      `wrong schema: the schema is at migration 9000, made by a newer version; this one knows ${wanted}`
    ])
    await gateways.query("delete from migrations where migration_id = 9000")
    expect(await found(env, "schema")).toEqual([
      `wrong schema: the schema is at migration ${wanted - 1}, and this version needs ${wanted}`
    ])

    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10).replaceAll("-", "")
    await gateways.query(`drop table attempts_${tomorrow}`)
    expect(await found(env, "partitions")).toEqual([
      `wrong partitions: 1 tables for today or tomorrow are missing, attempts_${tomorrow} among them`
    ])

    await chmod(join(env.TIDEGATE_HOME, "secrets.key"), 0o644)
    expect(await found(env, "files")).toEqual([
      `wrong files: others than its owner can read ${join(env.TIDEGATE_HOME, "secrets.key")}`
    ])

    const redis = `redis://127.0.0.1:${await freePort()}`
    expect(await found({ ...env, TIDEGATE_REDIS_URL: redis }, "redis")).toEqual([
      expect.stringContaining("notice redis: Redis does not answer")
    ])
  })

  it("Doctor finds runners that are silent, that cannot be reached and that have other keys", async ({
    env,
    running
  }) => {
    const gateways: One = await running({ all: "all" })
    const [registered] = await gateways.query("select address from cluster_runners")
    const runner = String(registered!["address"])
    expect(await found(env, "runners", "keys")).toEqual([])

    const others = { ...env, TIDEGATE_SECRET_KEYS: "ab".repeat(32) }
    expect(await found(others, "runners", "keys")).toEqual([
      "wrong keys: the secrets in this database were encrypted with another key",
      `wrong runners: the runner ${runner} has other secret keys, or something else listens there`
    ])

    // It goes on to say that it lives, as a runner behind a closed firewall does.
    const away = `127.0.0.1:${await freePort()}`
    const register =
      "insert into cluster_runners (address, runner, healthy, last_heartbeat) values ($1, '{}', true, now() + interval '1 hour')"
    await gateways.query(register, [away])
    expect(await found(env, "runners")).toEqual([
      `wrong runners: the runner ${away} works, and cannot be reached from here`
    ])

    await gateways.query("update cluster_runners set last_heartbeat = now() - interval '1 hour' where address = $1", [
      away
    ])
    expect(await found(env, "runners")).toEqual([
      `notice runners: the runner ${away} has given no sign of life for 60 minutes; the others have taken over its work`
    ])
    await gateways.query("delete from cluster_runners where address = $1", [away])

    const source = await gateways.api("all", "POST", "/sources", { name: "shop" })
    const destination = await gateways.api("all", "POST", "/destinations", {
      name: "till",
      type: "HTTP",
      config: { url: `http://127.0.0.1:${await freePort()}/` }
    })
    await gateways.api("all", "POST", "/connections", {
      name: "shop",
      source_id: source.id,
      destination_id: destination.id,
      rules: [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 1 }]
    })
    expect((await gateways.call("all", "POST", `/e/${source.id}`, { body: "{}" })).status).toBe(200)

    await gateways.process("all").end("SIGKILL")
    await gateways.query("update cluster_runners set last_heartbeat = last_heartbeat - interval '2 hours'")
    await gateways.query("update deliveries set due_at = now() - interval '2 hours'")
    expect(await found(env, "runners", "backlog")).toEqual([
      `wrong runners: the runner ${runner} has given no sign of life for 2 hours, and there is no other: nothing is delivered`,
      `wrong backlog: 1 deliveries wait for ${destination.id}, the oldest for 2 hours`
    ])
    await gateways.query("delete from cluster_runners")
    expect(await found(env, "runners")).toEqual(["wrong runners: no runner is registered: nothing is delivered"])

    const { code, said } = await admin(env, "doctor", "--json")
    const { findings, ok } = JSON.parse(said) as { ok: boolean; findings: ReadonlyArray<Record<string, unknown>> }
    expect([code, ok]).toEqual([1, false])
    expect(findings).toContainEqual({
      check: "runners",
      verdict: "wrong",
      says: "no runner is registered: nothing is delivered",
      way_out: "start a gateway with the role all or runner"
    })
    expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(checks.map(({ name }) => name)))
  })

  it("Doctor that cannot use the database says why, and still looks at the machine", async ({ env }) => {
    const port = await freePort()
    const all = await found({
      ...env,
      TIDEGATE_SECRET_KEYS: "ab".repeat(32),
      DATABASE_URL: `postgres://ada:pass-word@127.0.0.1:${port}/none`
    })
    expect(all[0]).toBe(
      `wrong database: DATABASE_URL: the PostgreSQL at 127.0.0.1:${port}/none cannot be reached (ECONNREFUSED); start it, or correct the URL`
    )
    expect(all.slice(1)).toEqual(
      checks
        .filter(({ of }) => of === "database")
        .map(({ name }) => `skipped ${name}: not looked at, because the database cannot be used`)
    )
  })
})
