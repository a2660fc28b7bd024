import { Context } from "effect"
import { type HttpApiEndpoint, HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { type Permission, type Role, scopesFor } from "@tidegate/model/Permission"
import type { Caller } from "@tidegate/model/Session"
import { holdsStoredPayload } from "@tidegate/model/StoredPayload"
import { ApiErrors } from "./ApiError.ts"

/** The team a call acts on, and who as what: every read and every command names it. */
export class CurrentTeam extends Context.Service<
  CurrentTeam,
  { readonly id: string; readonly role: Role; readonly caller: Caller }
>()("@tidegate/api/CurrentTeam") {}

/** Who may call an endpoint. Each has it by `operation`; one without it is let nobody in. */
export class CallableBy extends Context.Service<CallableBy, Permission>()("@tidegate/api/CallableBy") {}

/** Endpoints that pages of any origin may call: no credential of a team is sent to them. */
export class AnyOrigin extends Context.Service<AnyOrigin, boolean>()("@tidegate/api/AnyOrigin") {}

export const permissionOf = ({
  annotations,
  identifier
}: Pick<HttpApiEndpoint.Top, "annotations" | "identifier">): Permission => {
  const permission = Context.getOrUndefined(annotations, CallableBy)
  if (permission === undefined) throw new Error(`nothing says who may call ${identifier}`)
  return permission
}

/**
 * Whether a project key could call an endpoint that answers stored payloads without the right to read. The schema of the answer says
 * what is answered. Such a contract is refused when it is loaded: fails closed, because a forgotten permission would show payloads.
 */
export const leaksPayloads = (
  endpoint: Pick<HttpApiEndpoint.Top, "annotations" | "identifier" | "success">
): boolean => {
  const permission = permissionOf(endpoint)
  if (permission === "public" || permission.scope === null) return false
  return !scopesFor(permission).includes("control:read") && [...endpoint.success].some(holdsStoredPayload)
}

/**
 * Proves the caller's right to act on a team. `x-team-id` (or the query parameter `team_id`) names the team; without it, it
 * is the key's own, or the one that the session was begun on.
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentTeam }>()(
  "@tidegate/api/Authorization",
  {
    security: {
      // In lower case, as it is registered: the page at /docs takes `Bearer` for Basic, which is not let in.
      bearer: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
        HttpApiSecurity.annotate(OpenApi.Description, "A team's API key: it acts as an owner of that team.")
      )
    },
    error: ApiErrors,
    requiredForClient: true
  }
) {}
