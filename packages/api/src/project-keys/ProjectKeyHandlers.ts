import { Clock, Effect, type Result, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql"
import { fail, type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { maxExpiryDays, maxPerMinute, type ProjectKey, usualPerMinute } from "@tidegate/model/ProjectKey"
import { parseTime } from "@tidegate/model/Timestamp"
import type { Database } from "@tidegate/storage/Database"
import { readDecisions } from "@tidegate/storage/teams/KeyAudit"
import {
  createKey,
  getKey,
  type KeyPolicy,
  listKeys,
  revokeKey,
  type StoredKey,
  updateKey
} from "@tidegate/storage/teams/ProjectKeys"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { hexIdOfCall } from "../CallIds.ts"
import { changed, created } from "./ProjectKeysApi.ts"
import { grantable, grantOf } from "../contract/RouteKeys.ts"
import { KeyAudit } from "../KeyAudit.ts"
import { RateLimits } from "../RateLimit.ts"
import { asked, type ById, carriedThrough, read, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

/** The name of these routes in the audit of keys. */
const routes = "/v1/project-api-keys"

/** Faults of a key have a code of their own. */
const asPolicy = (error: GatewayError): GatewayError =>
  error.code === "VALIDATION_ERROR" ? fail("INVALID_KEY_POLICY", error.message, error.data) : error

const refused = (fields: ReadonlyArray<FieldError>) => Effect.fail(asPolicy(invalid(fields)))

const judged = <A>(judge: (body: Schema.JsonObject) => Result.Result<A, GatewayError>, { request }: WithBody) =>
  Effect.flatMap(readJsonObject(request), (body) => Effect.mapError(Effect.fromResult(judge(body)), asPolicy))

/** Grants by the canonical names of their routes, each once. */
const grantsOf = Effect.fnUntraced(function* (written: ReadonlyArray<string>) {
  const faults = written.flatMap((text, at) =>
    grantOf(text) === null
      ? [
          {
            path: `execute_grants.${at}`,
            message: "is not a route that can be granted: docs/permissions.md lists them"
          }
        ]
      : []
  )
  return faults.length > 0 ? yield* refused(faults) : [...new Set(written.flatMap((text) => grantOf(text) ?? []))]
})

/** The end of a key. That of a key that has ended may be sent back as it was read. */
const expiryOf = Effect.fnUntraced(function* (written: string | null, current: string | null) {
  if (written === null || written === current) return written
  const now = yield* Clock.currentTimeMillis
  // A day or a time, and not one of the relative times of lists.
  const at = /^\d/.test(written) ? parseTime(written, now) : null
  if (at === null || at <= now || at > now + maxExpiryDays * 86_400_000) {
    return yield* refused([
      {
        path: "expires_at",
        message: `must be a time in the future, like 2030-01-31T00:00:00Z, at most ${maxExpiryDays} days ahead`
      }
    ])
  }
  return new Date(at).toISOString()
})

/** Checks grants and scopes together: grants have no effect without the scope, and are never dropped without a request. */
const coherent = ({ execute_grants, scopes }: Pick<KeyPolicy, "execute_grants" | "scopes">) =>
  execute_grants?.length === 0 || scopes.includes("control:execute")
    ? Effect.void
    : refused([{ path: "execute_grants", message: "needs the scope control:execute; without it, send []" }])

export const layer = HttpApiBuilder.group(
  Api,
  "project-api-keys",
  Effect.fnUntraced(function* (handlers) {
    const services = yield* Effect.context<Database | Secrets>()
    const audit = yield* KeyAudit
    const { perKey } = yield* RateLimits

    const shown = ({ execute_grants, rate_limit_per_minute, ...key }: StoredKey): ProjectKey => ({
      ...key,
      execute_grants: execute_grants ?? grantable,
      rate_limit_per_minute: rate_limit_per_minute ?? Math.min(perKey === 0 ? maxPerMinute : perKey, maxPerMinute)
    })
    const reading = <A>(effect: Effect.Effect<A, GatewayError | SqlError.SqlError, Database | Secrets>) =>
      read(Effect.provideContext(effect, services))
    const writing = <A>(effect: Effect.Effect<A, GatewayError, Database | Secrets>) =>
      carriedThrough(Effect.provideContext(effect, services))

    /** Changes of a key are in its audit too. */
    const note = (route: string, key: Pick<ProjectKey, "id" | "team_id">) =>
      audit.note({
        key: { id: key.id, team: key.team_id },
        route,
        permission: "edit",
        decision: "allowed",
        reason: null,
        isUse: false
      })

    const update = (method: "PATCH" | "PUT") =>
      Effect.fnUntraced(function* (call: ById & WithBody) {
        const { id: team } = yield* CurrentTeam
        const { execute_grants, ...given } = yield* judged(changed.judge, call)
        const grants = execute_grants === undefined ? undefined : yield* grantsOf(execute_grants)
        const next = Effect.fnUntraced(function* (key: StoredKey) {
          if (key.legacy_project_secret && given.name !== undefined && given.name !== key.name) {
            return yield* refused([{ path: "name", message: "cannot be changed: it is the team's API key" }])
          }
          const { name, rate_limit_per_minute, scopes, status } = { ...key, ...given }
          const policy = {
            name,
            status: status === "disabled" ? status : ("active" as const),
            scopes,
            execute_grants: grants ?? key.execute_grants,
            rate_limit_per_minute,
            expires_at:
              given.expires_at === undefined ? key.expires_at : yield* expiryOf(given.expires_at, key.expires_at)
          }
          yield* coherent(policy)
          return policy
        })
        const key = yield* writing(updateKey(team, call.params.id, next))
        yield* note(`${method}:${routes}/:id`, key)
        return { data: shown(key) }
      })

    const revoke =
      (route: string) =>
      ({ params }: ById) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const key = yield* writing(revokeKey(team, params.id))
          yield* note(route, key)
          return { data: shown(key) }
        })

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return { data: (yield* reading(listKeys(team))).map(shown) }
        })
      )
      .handleRaw("create", (call: WithBody) =>
        Effect.gen(function* () {
          const { by, team_id: team } = yield* asked
          const {
            execute_grants = [],
            expires_at = null,
            name,
            rate_limit_per_minute = usualPerMinute,
            scopes
          } = yield* judged(created.judge, call)
          const policy = {
            name,
            scopes,
            execute_grants: yield* grantsOf(execute_grants),
            rate_limit_per_minute,
            expires_at: yield* expiryOf(expires_at, null)
          }
          yield* coherent(policy)
          const { api_key, key } = yield* writing(createKey(team, policy, by, yield* hexIdOfCall("pak_", 32)))
          yield* note(`POST:${routes}`, key)
          return { data: { ...shown(key), api_key } }
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return { data: shown(yield* reading(getKey(team, params.id))) }
        })
      )
      .handleRaw("update", update("PATCH"))
      .handleRaw("updateByPut", update("PUT"))
      .handle("revoke", revoke(`DELETE:${routes}/:id`))
      .handle("revokeByPost", revoke(`POST:${routes}/:id/revoke`))
      .handle("audit", ({ params }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          yield* reading(getKey(team, params.id))
          return { data: yield* reading(readDecisions(team, params.id)) }
        })
      )
  })
)
