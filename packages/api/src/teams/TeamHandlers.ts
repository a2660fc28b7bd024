import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql"
import { fail, type GatewayError, invalid, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { userOf } from "@tidegate/model/Session"
import type { TeamMember } from "@tidegate/model/Team"
import type { Database } from "@tidegate/storage/Database"
import {
  changeRole,
  createTeam,
  listMembers,
  type Member,
  memberOf,
  putMember,
  removeMember
} from "@tidegate/storage/teams/Members"
import { demoUser } from "@tidegate/storage/teams/People"
import { listDeletions, readDeletion, requestDeletion } from "@tidegate/storage/teams/TeamDeletions"
import { readTeam, teamsOf, updateTeam } from "@tidegate/storage/teams/TeamSettings"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { memberPatch, memberWrite, teamDeletionWrite, teamPatch, teamWrite } from "./TeamsApi.ts"
import { SignInSettings } from "../SignInSettings.ts"
import { asked, type ById, carriedThrough, read, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

const shown = ({ created_at, isExpected, ...member }: Member): TeamMember => ({
  ...member,
  expected: isExpected,
  created_at: created_at.toISOString()
})

export const layer = HttpApiBuilder.group(
  Api,
  "teams",
  Effect.fnUntraced(function* (handlers) {
    const database = yield* Effect.context<Database>()
    const issuer = (yield* SignInSettings).issuer?.issuer ?? null
    const reading = <A>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, Database>) =>
      read(Effect.provideContext(effect, database))
    const writing = <A>(effect: Effect.Effect<A, GatewayError, Database>) =>
      carriedThrough(Effect.provideContext(effect, database))
    const current = Effect.map(CurrentTeam, ({ id }) => id)
    /**
     * The team, for callers who may manage its members. The demo user may not: members that it added would remain when demo
     * sign-in is switched off.
     */
    const managed = Effect.flatMap(CurrentTeam, ({ caller, id }) =>
      userOf(caller) === demoUser
        ? Effect.fail(
            fail("USER_SESSION_REQUIRED", "the demo user cannot manage members, because anybody can be that user")
          )
        : Effect.succeed(id)
    )
    const shownMember = (team: string, user: string) => Effect.map(reading(memberOf(team, user)), shown)

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { caller } = yield* CurrentTeam
          const memberships =
            caller.kind === "key" ? [{ team_id: caller.key.team, role: "owner" as const }] : caller.signedIn.memberships
          return { data: yield* reading(teamsOf(memberships)) }
        })
      )
      .handleRaw("create", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { by } = yield* asked
          const { name, owner } = yield* Effect.fromResult(teamWrite.judge(yield* readJsonObject(request)))
          const made = yield* idOfCall(prefixes.team)
          const id = yield* writing(createTeam(name, { user: owner ?? by ?? "", issuer }, made))
          return yield* reading(readTeam(id))
        })
      )
      .handle("retrieve", () => Effect.flatMap(current, (team) => reading(readTeam(team))))
      .handleRaw("update", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const team = yield* current
          const change = yield* Effect.fromResult(teamPatch.judge(yield* readJsonObject(request)))
          return yield* writing(updateTeam(team, change))
        })
      )
      .handle("members", () =>
        Effect.gen(function* () {
          return { data: (yield* reading(listMembers(yield* current))).map(shown) }
        })
      )
      .handleRaw("addMember", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const team = yield* managed
          const { email, role = "member" } = yield* Effect.fromResult(memberWrite.judge(yield* readJsonObject(request)))
          return yield* shownMember(team, yield* writing(putMember(team, { user: email, issuer }, role)))
        })
      )
      .handleRaw("changeMember", ({ params, request }: ById & WithBody) =>
        Effect.gen(function* () {
          const team = yield* managed
          const { role } = yield* Effect.fromResult(memberPatch.judge(yield* readJsonObject(request)))
          yield* writing(changeRole(team, params.id, role))
          return yield* shownMember(team, params.id)
        })
      )
      .handle("removeMember", ({ params }) =>
        Effect.gen(function* () {
          const team = yield* managed
          // An address would be searched among all users.
          if (params.id.includes("@")) return yield* notFound("member", params.id)
          yield* writing(removeMember(team, params.id))
          return { id: params.id, deleted: true as const }
        })
      )
      .handleRaw("delete", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { by, team_id } = yield* asked
          const written = yield* Effect.fromResult(teamDeletionWrite.judge(yield* readJsonObject(request)))
          if (written.team_id !== team_id) {
            yield* invalid([{ path: "team_id", message: "is not the team that the call acts on" }])
          }
          return yield* writing(requestDeletion(team_id, written.team_name, by))
        })
      )
      .handle("deletions", () => Effect.map(reading(listDeletions), (data) => ({ data })))
      .handle("deletion", ({ params }) =>
        Effect.gen(function* () {
          const { caller } = yield* CurrentTeam
          const isSiteAdmin = caller.kind === "session" && caller.isSiteAdmin
          // Nobody but site admins learns of the deletions of others.
          return yield* reading(readDeletion(params.id, isSiteAdmin ? null : (userOf(caller) ?? "")))
        })
      )
  })
)
