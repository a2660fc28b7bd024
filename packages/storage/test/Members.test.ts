import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  changeRole,
  createTeam,
  listMembers,
  listTeams,
  maxMembers,
  putMember,
  removeMember
} from "../src/teams/Members.ts"
import { type Admission, type Identity, sessionsByToken, signIn } from "../src/teams/People.ts"
import { binsTeam } from "../src/teams/Teams.ts"
import * as ControlPlane from "./controlPlane.ts"

const issuer = "https://issuer.test"
const who = (name: string, more: Partial<Identity> = {}): Identity => ({
  issuer,
  subject: `subject-${name}`,
  email: `${name}@example.com`,
  email_verified: true,
  name,
  picture_url: null,
  ...more
})
const admission: Admission = { isSiteAdmin: false, team_id: null, foundsTeam: false }
const address = (name: string) => ({ user: `${name}@example.com`, issuer })
const enter = (name: string, more?: Partial<Identity>) => signIn(who(name, more), `ses_${name}`, admission)
const codeOf = <R>(effect: Effect.Effect<unknown, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as { readonly code?: string }).code)
const rolesOf = (team: string) =>
  Effect.map(listMembers(team), (members) => members.map(({ email, role }) => `${email} ${role}`).toSorted())

layer(ControlPlane.layer, { excludeTestServices: true })("Members of a team", (it) => {
  it.effect("Members sign in with the address they were added by, once their issuer verified it", () =>
    Effect.gen(function* () {
      expect(yield* codeOf(enter("ada"))).toBe("TEAM_FORBIDDEN")
      const team = yield* createTeam("Engines", address("Ada"))
      yield* putMember(team, address("grace"), "member")
      expect((yield* listMembers(team)).map(({ isExpected }) => isExpected)).toEqual([true, true])
      expect((yield* listTeams).find(({ id }) => id === team)).toEqual({ id: team, name: "Engines", members: 2 })

      expect(yield* codeOf(enter("ada", { email_verified: false }))).toBe("TEAM_FORBIDDEN")
      expect(yield* codeOf(enter("ada", { issuer: "https://another.test" }))).toBe("TEAM_FORBIDDEN")
      const ada = yield* enter("ada", { email: "ADA@example.com" })
      expect(ada.memberships).toEqual([{ team_id: team, role: "owner" }])
      const grace = yield* enter("grace")
      expect(grace.memberships).toEqual([{ team_id: team, role: "member" }])
      expect((yield* listMembers(team)).map(({ id, isExpected }) => [id, isExpected])).toEqual([
        [ada.user.id, false],
        [grace.user.id, false]
      ])
      // Somebody else with that address later takes nobody's place.
      expect(yield* codeOf(enter("ada", { subject: "another" }))).toBe("TEAM_FORBIDDEN")
    })
  )

  it.effect("The number of a team's members is limited, even in concurrent additions", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const team = yield* createTeam("Crowd", address("first"))
      yield* sql`insert into users (id, issuer, subject, created_at, updated_at)
        select 'usr_crowd' || n, ${issuer}, 'crowd' || n, now(), now() from generate_series(1, ${maxMembers - 3}::int) n`
      yield* sql`insert into memberships select ${team}, 'usr_crowd' || n, 'member', now() from generate_series(1, ${maxMembers - 3}::int) n`
      const ends = yield* Effect.all(
        Array.from({ length: 5 }, (_, n) => Effect.result(putMember(team, address(`late${n}`), "member"))),
        { concurrency: "unbounded" }
      )
      expect(ends.filter(({ _tag }) => _tag === "Success").length).toBe(2)
      expect((yield* listMembers(team)).length).toBe(maxMembers)
      // Who is there already may become an owner.
      yield* putMember(team, { user: "usr_crowd1", issuer: null }, "owner")
      expect(yield* codeOf(changeRole(team, "usr_nobody", "owner"))).toBe("NOT_FOUND")
    })
  )

  it.effect("An address that only looks similar is not a member's: only A to Z equal a to z", () =>
    Effect.gen(function* () {
      const team = yield* createTeam("Kelvins", address("kate"))
      const kelvin = "\u212Aate@example.com"
      expect(yield* codeOf(enter("kelvin", { email: kelvin }))).toBe("TEAM_FORBIDDEN")
      const founder = { ...admission, foundsTeam: true }
      const other = yield* signIn(who("kelvin", { email: kelvin }), "ses_kelvin", founder)
      yield* putMember(team, address("kate"), "owner")
      expect((yield* listMembers(team)).map(({ id }) => id)).not.toContain(other.user.id)
    })
  )

  it.effect("A member who was expected by another issuer is now expected by the current one", () =>
    Effect.gen(function* () {
      const team = yield* createTeam("Issuers", address("issuers"))
      yield* putMember(team, { user: "edith@example.com", issuer: "https://mistyped.test" }, "member")
      yield* putMember(team, address("edith"), "member")
      expect((yield* enter("edith")).memberships).toEqual([{ team_id: team, role: "member" }])
    })
  )

  it.effect("Nobody can be a member of the team of public bins", () =>
    Effect.gen(function* () {
      expect(yield* codeOf(putMember(binsTeam, address("ada"), "owner"))).toBe("NOT_FOUND")
      expect((yield* listTeams).map(({ id }) => id)).not.toContain(binsTeam)
    })
  )

  it.effect("A changed membership applies to the next call of an existing session", () =>
    Effect.gen(function* () {
      const find = yield* sessionsByToken
      const roles = Effect.map(find("ses_bea"), (session) => session?.memberships.map(({ role }) => role))
      const team = yield* createTeam("Looms", address("cy"))
      yield* putMember(team, address("bea"), "member")
      const bea = yield* enter("bea")
      expect(yield* roles).toEqual(["member"])
      yield* putMember(team, { user: bea.user.id, issuer: null }, "owner")
      expect(yield* roles).toEqual(["owner"])
      yield* removeMember(team, bea.user.id)
      expect(yield* roles).toEqual([])
    })
  )

  it.effect("A team always keeps an owner, even if two leave at the same time", () =>
    Effect.gen(function* () {
      const team = yield* createTeam("Wheels", address("dot"))
      expect(yield* codeOf(removeMember(team, "dot@example.com"))).toBe("RESOURCE_IN_USE")
      expect(yield* codeOf(putMember(team, address("dot"), "member"))).toBe("RESOURCE_IN_USE")
      yield* putMember(team, address("eve"), "owner")
      const leaving = ["dot", "eve"].map((name) => Effect.exit(removeMember(team, `${name}@example.com`)))
      const left = yield* Effect.all(leaving, { concurrency: "unbounded" })
      expect(left.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
      expect(yield* rolesOf(team)).toHaveLength(1)
    })
  )

  it.effect("An expected member is forgotten with the last membership", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const team = yield* createTeam("Cogs", address("fay"))
      yield* putMember(team, address("gil"), "member")
      yield* putMember(team, address("gil"), "owner")
      expect(yield* rolesOf(team)).toEqual(["fay@example.com owner", "gil@example.com owner"])
      yield* removeMember(team, "GIL@example.com")
      expect(yield* sql`select from users where email = 'gil@example.com'`).toHaveLength(0)
    })
  )

  it.effect("Changes of missing teams and members are rejected with the cause", () =>
    Effect.gen(function* () {
      expect(yield* codeOf(listMembers("tm_nowhere"))).toBe("NOT_FOUND")
      expect(yield* codeOf(putMember("tm_nowhere", address("hal"), "member"))).toBe("NOT_FOUND")
      const team = yield* createTeam("Gears", address("hal"))
      expect(yield* codeOf(putMember(team, { user: "usr_nobody", issuer }, "member"))).toBe("NOT_FOUND")
      expect(yield* codeOf(removeMember(team, "ivy@example.com"))).toBe("NOT_FOUND")
      expect(yield* codeOf(putMember(team, { user: "ivy@example.com", issuer: null }, "member"))).toBe(
        "VALIDATION_ERROR"
      )
    })
  )
})
