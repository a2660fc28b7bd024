import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { beginRemoval, DeletionPace, removePiece } from "@tidegate/storage/teams/TeamRemoval"
import { SignInSettings } from "../src/SignInSettings.ts"
import { call, layer as server, teams } from "./ControlServer.ts"

/** The deletion of a team, by the API. */

const admin = "root@example.com"

const world = server.pipe(
  Layer.provide(
    Layer.effect(
      SignInSettings,
      Effect.map(SignInSettings, (settings) => ({ ...settings, siteAdmins: new Set([admin]) }))
    )
  )
)

const team = teams.a.id

/** Somebody who is signed in: to team A, unless they are a site admin. `role`: in team A. */
const somebody = Effect.fnUntraced(function* (role: "owner" | "member" | null, email: string) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.user, Date.now())
  const token = `ses_${randomBytes(32).toString("hex")}`
  yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
    values (${id}, 'i', ${id}, ${email}, true, 'Ada', now(), now())`
  if (role !== null) yield* sql`insert into memberships values (${team}, ${id}, ${role}, now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${email === admin ? teams.b.id : team}, now(), now() + interval '1 hour')`
  return { id, token }
})

layer(world, { excludeTestServices: true })("Deletion of a team by the API", (it) => {
  it.effect(
    "A team is deleted by its owner, who names it twice, and its progress is told to the owner and to site admins",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const owner = yield* somebody("owner", "ada@example.com")
        const member = yield* somebody("member", "bob@example.com")
        const root = yield* somebody(null, admin)
        // Another team of the owner's: their session goes on with it.
        yield* sql`insert into memberships values (${teams.b.id}, ${owner.id}, 'member', now())`
        const source = yield* call("POST", "/sources", { body: { name: "orders" } })
        expect(source.status).toBe(200)

        const ask = (key: string, body: object, headers: Record<string, string> = {}) =>
          Effect.map(call("POST", "/team/deletion", { key, body, headers }), ({ body, status }) => [
            status,
            body.code ?? body.stage,
            body.data?.fields?.[0]?.path
          ])
        const right = { team_id: team, team_name: team }
        expect(yield* ask(teams.a.key, right)).toEqual([403, "USER_SESSION_REQUIRED", undefined])
        expect(yield* ask(member.token, right)).toEqual([403, "ROLE_REQUIRED", undefined])
        expect(yield* ask(owner.token, { team_id: team })).toEqual([400, "VALIDATION_ERROR", "team_name"])
        expect(yield* ask(owner.token, { ...right, team_name: "tm" })).toEqual([400, "VALIDATION_ERROR", "team_name"])
        expect(yield* ask(owner.token, { ...right, team_id: teams.b.id })).toEqual([400, "VALIDATION_ERROR", "team_id"])
        expect((yield* call("GET", "/team-deletions", { key: root.token })).body.data).toEqual([])
        expect((yield* call("GET", `/team-deletions/${team}`, { key: root.token })).status).toBe(404)

        expect(yield* ask(owner.token, right)).toEqual([202, "stopping", undefined])
        // From now on nobody acts on the team.
        expect((yield* call("GET", "/sources")).body.code).toBe("INVALID_API_KEY")
        const named = { "x-team-id": team }
        expect((yield* call("GET", "/sources", { key: owner.token, headers: named })).body.code).toBe("TEAM_FORBIDDEN")
        expect((yield* call("GET", "/sources", { key: member.token })).body.code).toBe("TEAM_FORBIDDEN")
        expect((yield* call("GET", "/sources", { key: root.token, headers: named })).body.code).toBe("TEAM_FORBIDDEN")
        expect((yield* call("GET", "/team", { key: owner.token })).body.id).toBe(teams.b.id)

        const path = `/team-deletions/${team}`
        const begun = yield* call("GET", path, { key: owner.token })
        expect(begun.body).toMatchObject({
          team_id: team,
          stage: "stopping",
          requested_by: owner.id,
          finished_at: null
        })
        expect((yield* call("GET", path, { key: member.token })).status).toBe(404)
        expect((yield* call("GET", path, { key: teams.b.key })).body.code).toBe("USER_SESSION_REQUIRED")
        expect((yield* call("GET", "/team-deletions", { key: owner.token })).body.code).toBe("ROLE_REQUIRED")

        yield* beginRemoval(team)
        while ((yield* removePiece(team)) !== null);
        const done = yield* call("GET", path, { key: owner.token })
        expect(done.body).toMatchObject({ stage: "done", current_table: null, finished_at: expect.any(String) })
        expect(done.body.deleted).toMatchObject({ teams: 1, sources: 1, memberships: 2 })
        expect(done.body.deleted_total).toBeGreaterThan(4)
        expect((yield* call("GET", "/team-deletions", { key: root.token })).body.data).toEqual([done.body])
        // A session without another team has ended with it.
        expect((yield* call("GET", path, { key: member.token })).status).toBe(401)
      }).pipe(Effect.provideService(DeletionPace, { pages: 128, quietMs: 0, channelsMs: 0 }))
  )
})
