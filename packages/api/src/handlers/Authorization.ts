import { Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { RateLimiter } from "@tidegate/coordination/RateLimiter"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Principals, Role } from "@tidegate/model/Permission"
import type { Caller } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import { teamExists } from "@tidegate/storage/People"
import { Credentials, spend } from "../Credentials.ts"
import { CallNotes } from "../CallTelemetry.ts"
import { Authorization, CurrentTeam, permissionOf } from "../contract/Authorization.ts"
import { perMinute, RateLimits } from "../RateLimit.ts"
import { read } from "./Calls.ts"

/** Keys and users are counted only once they have proven to be one. */
const mostKeys = 100_000

/** The teams that a call names: all of them have to be the one that it acts on. */
export const namedTeams = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const query = (yield* HttpServerRequest.ParsedSearchParams).team_id ?? []
  const header = request.headers["x-team-id"]
  const named = header !== undefined && header !== "" ? [header] : typeof query === "string" ? [query] : query
  return [...new Set(named.filter((id) => id !== ""))]
})

/**
 * What a caller is to a team; null: nothing. A key is nothing to any team but its own, whatever there is; a site admin is an owner of
 * every team that there is.
 */
export const roleIn = Effect.fnUntraced(function* (
  caller: Caller,
  team: string
): Effect.fn.Return<Role | null, GatewayError, Database> {
  if (caller.kind === "team_key") return caller.team === team ? "owner" : null
  const { isSiteAdmin, signedIn } = caller
  if (isSiteAdmin) return (yield* read(teamExists(team))) ? "owner" : null
  return signedIn.memberships.find(({ team_id }) => team_id === team)?.role ?? null
})

/** The team that a caller acts on who names none. */
export const ownTeam = (caller: Caller): string => (caller.kind === "team_key" ? caller.team : caller.signedIn.team)

/** Counts the calls of each key and user; fails for the one that is too many. */
export const callCount = Effect.gen(function* () {
  const { perKey } = yield* RateLimits
  const limiter = yield* RateLimiter
  const calls = perKey === 0 ? null : perMinute("api_calls", perKey, mostKeys)

  return Effect.fnUntraced(function* (
    caller: Caller
  ): Effect.fn.Return<void, GatewayError, HttpServerRequest.HttpServerRequest> {
    if (calls === null) return
    const [scope, key] =
      caller.kind === "team_key" ? (["key", caller.team] as const) : (["session", caller.signedIn.user.id] as const)
    yield* spend(scope, yield* limiter.take(calls, key))
  })
})

/** Why somebody of that role may not call what is said to be callable by others; null when they may. */
export const refusal = (permission: Principals, caller: Caller, role: Role): GatewayError | null => {
  if (caller.kind === "team_key") {
    return permission.teamKey ? null : fail("USER_SESSION_REQUIRED", "this needs a signed-in user, not an API key")
  }
  const required = permission.user
  const may =
    required === "self" || required === "member" || caller.isSiteAdmin || (required === "owner" && role === "owner")
  const who = required === "admin" ? "site admins" : "owners of the team"
  return may ? null : fail("ROLE_REQUIRED", `only ${who} may do this`, { required })
}

/**
 * Lets in whom an endpoint is said to be callable by, and counts the calls of each key and user. Without a Redis to ask, each process
 * counts for itself: fails open, because an operator must reach the API. Asked in this order,
 * so that nothing is told before it may be: who it is, whether they may act on the team, whether they call too often,
 * whether they may do this.
 */
export const layer: Layer.Layer<Authorization, never, Credentials | Database | RateLimiter> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const database = yield* Effect.context<Database>()
    const { callerOf } = yield* Credentials
    const count = yield* callCount

    return Authorization.of({
      bearer: (effect, { credential, endpoint }) =>
        Effect.gen(function* () {
          const permission = permissionOf(endpoint)
          // It is checked where nobody needs to be: fails closed, because its endpoint and its group disagree.
          if (permission === "public") return yield* Effect.die(`${endpoint.identifier} is public, and asks for a key`)
          const caller = yield* callerOf(Redacted.value(credential))
          const named = yield* namedTeams
          const id = named[0] ?? ownTeam(caller)
          ;(yield* CallNotes).team = id
          const role = named.length > 1 ? null : yield* Effect.provideContext(roleIn(caller, id), database)
          // What concerns the user alone is theirs to do when no team has them any more.
          const alone = permission.user === "self" && named.length === 0
          if (role === null && !alone) {
            return yield* fail(
              "TEAM_FORBIDDEN",
              `the ${caller.kind === "team_key" ? "API key" : "user"} cannot act on this team`
            )
          }
          yield* count(caller)
          const refused = refusal(permission, caller, role ?? "member")
          if (refused !== null) return yield* refused
          return yield* Effect.provideService(effect, CurrentTeam, { id, role: role ?? "member", caller })
        })
    })
  })
)
