import { Effect, Layer, Redacted } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { lackingOf, type Lacking, type Principals, type Role } from "@tidegate/model/Permission"
import type { KeyDecision, KeyInUse, KeyPermission, KeyReason } from "@tidegate/model/ProjectKey"
import { type Caller, ownTeam } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { teamExists } from "@tidegate/storage/teams/People"
import { Credentials, spend } from "../Credentials.ts"
import { CallNotes } from "../CallTelemetry.ts"
import { Authorization, CurrentTeam, permissionOf } from "../contract/Authorization.ts"
import { narrowedTo, routeKeyOf } from "../contract/RouteKeys.ts"
import { onceByKey } from "../Idempotency.ts"
import { KeyAudit } from "../KeyAudit.ts"
import { KeyLimits } from "../KeyLimits.ts"
import { perMinute, RateLimits } from "../RateLimit.ts"
import { judgeQuery } from "../strict/Handling.ts"
import { read } from "./Calls.ts"
import { judgeNoBody } from "./JsonBody.ts"

/** Team keys and users are counted only after they have proven their identity. */
const maxKeys = 100_000

/** A requested route of the contract, and who may call it. */
export interface Asked {
  readonly route: string
  readonly permission: Principals
  /** The object that the call is about; absent: none, or no grant can name it. */
  readonly object?: string | undefined
}

/** The teams that a call names: all of them have to be the team that it acts on. */
export const namedTeams = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const query = (yield* HttpServerRequest.ParsedSearchParams).team_id ?? []
  const header = request.headers["x-team-id"]
  const named = header !== undefined && header !== "" ? [header] : typeof query === "string" ? [query] : query
  return [...new Set(named.filter((id) => id !== ""))]
})

/**
 * The caller's role in a team; null: none. A key has a role only in its own team. It is a member, unless it is the team's own
 * key. A site admin is an owner of every existing team.
 */
const roleIn = Effect.fnUntraced(function* (
  caller: Caller,
  team: string
): Effect.fn.Return<Role | null, GatewayError, Database> {
  if (caller.kind === "key") {
    const { isTeamKey, team: own } = caller.key
    return own === team ? (isTeamKey ? "owner" : "member") : null
  }
  const { isSiteAdmin, signedIn } = caller
  if (isSiteAdmin) return (yield* read(teamExists(team))) ? "owner" : null
  return signedIn.memberships.find(({ team_id }) => team_id === team)?.role ?? null
})

/** Why a user with that role may not make the call; null when they may. */
const refusalOfUser = ({ user: required }: Principals, isSiteAdmin: boolean, role: Role): GatewayError | null => {
  const may = required === "self" || required === "member" || isSiteAdmin || (required === "owner" && role === "owner")
  const who = required === "admin" ? "site admins" : "owners of the team"
  return may ? null : fail("ROLE_REQUIRED", `only ${who} may do this`, { required })
}

const refusalOfKey = (lacking: Lacking, route: string): GatewayError => {
  if (lacking.what === "session") return fail("USER_SESSION_REQUIRED", "this needs a signed-in user, not an API key")
  return lacking.what === "scope"
    ? fail("INSUFFICIENT_SCOPE", `the key needs the scope ${lacking.scope}`, { required: lacking.scope })
    : fail("EXECUTE_GRANT_REQUIRED", `the key needs a grant for ${route}`, { route_key: route })
}

const reasonOf = { session: "session_required", scope: "scope_missing", grant: "grant_missing" } as const

/** What a call needs from a key, as the audit names it. */
export const keyPermissionOf = ({ permission: { scope }, route }: Asked): KeyPermission => {
  if (scope === "tunnel:connect") return "tunnel-connect"
  if (scope !== null && scope !== "any") return scope.slice("control:".length) as KeyPermission
  if (route.startsWith("GET:")) return "read"
  return route.includes("/project-secrets") ? "rotate-secret" : "edit"
}

interface Knock extends Asked {
  readonly credential: string
  readonly named: ReadonlyArray<string>
  /** Whether it counts as a call of its caller; the repeated check of an open stream does not. */
  readonly isCall: boolean
}

/**
 * Authorizes the callers of a route, and counts the calls of each key and user. Without Redis, each process counts users and team
 * keys on its own: fails open, because an operator must be able to reach the API. The order of the checks reveals nothing too
 * early: the identity, the right to act on the team, the rate limit, the permission. Decisions about keys go to the audit.
 */
export const authorizing = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const { callerOf } = yield* Credentials
  const { perKey } = yield* RateLimits
  const limiter = yield* RateLimiter
  const limits = yield* KeyLimits
  const audit = yield* KeyAudit
  const usual = perKey === 0 ? null : perMinute("api_calls", perKey, maxKeys)

  const count = Effect.fnUntraced(function* (caller: Caller) {
    if (caller.kind === "session") {
      if (usual !== null) yield* spend("session", yield* limiter.take(usual, caller.signedIn.user.id))
      return
    }
    const { id, isTeamKey, perMinute: own, team } = caller.key
    if (own !== null) yield* spend(isTeamKey ? "key" : "project_key", yield* limits.take(id, own))
    else if (usual !== null) yield* spend("key", yield* limiter.take(usual, team))
  })

  return Effect.fnUntraced(function* ({ credential, isCall, named, object, permission, route }: Knock) {
    const asked = { route, permission }
    const note = (key: KeyInUse, decision: KeyDecision, reason: KeyReason | null) => {
      const isUse = decision === "allowed" || reason === "legacy_shadow_denied"
      return audit.note({ key, route, permission: keyPermissionOf(asked), decision, reason, isUse })
    }

    const caller = yield* callerOf(credential, (key, reason) => note(key, "denied", reason))
    const id = named[0] ?? ownTeam(caller)
    ;(yield* CallNotes).team = id
    const role = named.length > 1 ? null : yield* Effect.provideContext(roleIn(caller, id), database)
    // Calls about the user alone are allowed even when the user is in no team any more.
    const alone = permission.user === "self" && named.length === 0
    if (role === null && !alone) {
      if (caller.kind === "key") yield* note(caller.key, "denied", "team_mismatch")
      const who = caller.kind === "key" ? "API key" : "user"
      return yield* fail("TEAM_FORBIDDEN", `the ${who} cannot act on this team`)
    }
    const counted = isCall ? count(caller) : Effect.void
    if (caller.kind === "session") {
      yield* counted
      const refused = refusalOfUser(permission, caller.isSiteAdmin, role ?? "member")
      if (refused !== null) return yield* refused
    } else {
      const { key } = caller
      yield* Effect.tapError(counted, () => note(key, "rate_limited", "rate_limited"))
      const lacking = lackingOf(permission, route, key, object === undefined ? route : narrowedTo(route, object))
      const isWatched = lacking !== null && lacking.what !== "session" && !key.isEnforced
      if (lacking !== null && !isWatched) {
        yield* note(key, "denied", reasonOf[lacking.what])
        return yield* refusalOfKey(lacking, route)
      }
      yield* isWatched ? note(key, "denied", "legacy_shadow_denied") : note(key, "allowed", null)
    }
    if (isCall) yield* judgeQuery
    return { id, role: role ?? "member", caller } as const
  })
})

export const layer: Layer.Layer<
  Authorization,
  never,
  Credentials | Database | KeyAudit | KeyLimits | RateLimiter | Secrets
> = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const authorize = yield* authorizing
    const once = yield* onceByKey
    return Authorization.of({
      bearer: (effect, { credential, endpoint }) =>
        Effect.gen(function* () {
          const permission = permissionOf(endpoint)
          // Authorization was requested for a public endpoint: fails closed, because the endpoint and its group disagree.
          if (permission === "public") return yield* Effect.die(`${endpoint.identifier} is public, and asks for a key`)
          const route = routeKeyOf(endpoint)
          const named = yield* namedTeams
          const who = yield* authorize({
            credential: Redacted.value(credential),
            named,
            permission,
            route,
            object: (yield* HttpRouter.params)["id"],
            isCall: true
          })
          return yield* once(Effect.andThen(judgeNoBody, Effect.provideService(effect, CurrentTeam, who)), who)
        })
    })
  })
)
