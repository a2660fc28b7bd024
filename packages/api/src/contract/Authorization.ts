import { Context } from "effect"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { type Permission, type Role, scopesFor } from "@tidegate/model/Permission"
import type { Caller } from "@tidegate/model/Session"
import { holdsStoredPayload } from "@tidegate/model/StoredPayload"
import { ApiErrors } from "./ApiError.ts"

/** The team of a call, and the caller's identity and role: every read and every command uses it. */
export class CurrentTeam extends Context.Service<
  CurrentTeam,
  { readonly id: string; readonly role: Role; readonly caller: Caller }
>()("@tidegate/api/CurrentTeam") {}

/** Who may call an endpoint; set by `operation`. An endpoint without it allows nobody. */
export class CallableBy extends Context.Service<CallableBy, Permission>()("@tidegate/api/CallableBy") {}

/** Endpoints that pages of any origin may call: they get no credential of a team. */
export class AnyOrigin extends Context.Service<AnyOrigin, boolean>()("@tidegate/api/AnyOrigin") {}

export const permissionOf = ({
  annotations,
  identifier
}: Pick<HttpApiEndpoint.Top, "annotations" | "identifier">): Permission => {
  const permission = Context.getOrUndefined(annotations, CallableBy)
  if (permission === undefined) throw new Error(`no permission is declared for ${identifier}`)
  return permission
}

/**
 * Whether a project key could call an endpoint that returns stored payloads without the right to read. The schema of the answer
 * shows what it returns. Such a contract is refused when it is loaded: fails closed, because a forgotten permission would reveal
 * payloads.
 */
export const leaksPayloads = (
  endpoint: Pick<HttpApiEndpoint.Top, "annotations" | "identifier" | "success">
): boolean => {
  const permission = permissionOf(endpoint)
  if (permission === "public" || permission.scope === null) return false
  return !scopesFor(permission).includes("control:read") && [...endpoint.success].some(holdsStoredPayload)
}

/**
 * Checks the caller's right to act on a team. `x-team-id` (or the query parameter `team_id`) names the team; without it, it is
 * the key's own team, or the one that the session began on.
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentTeam }>()(
  "@tidegate/api/Authorization",
  {
    security: {
      // In lower case, as it is registered: the page at /docs takes `Bearer` for Basic, which is not accepted.
      bearer: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
        HttpApiSecurity.annotate(OpenApi.Description, "A team's API key: it acts as an owner of that team.")
      )
    },
    error: ApiErrors,
    requiredForClient: true
  }
) {}
