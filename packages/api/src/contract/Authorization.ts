import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"

/** What a caller is to the team. A team's API key acts as an owner. */
export type Role = "owner" | "member"

/** The team a call acts on, and as what: every read and every command names it. */
export class CurrentTeam extends Context.Service<CurrentTeam, { readonly id: string; readonly role: Role }>()(
  "@tidegate/api/CurrentTeam"
) {}

/**
 * Proves the caller's right to act on a team. `x-team-id` (or the query parameter `team_id`) names the team; without it, it
 * is the key's own.
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentTeam }>()(
  "@tidegate/api/Authorization",
  {
    security: {
      // In lower case, as it is registered: the page at /docs takes `Bearer` for Basic, which is not let in.
      bearer: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
        HttpApiSecurity.annotate(OpenApi.Description, "A team's API key. `x-team-id` names the team to act on.")
      )
    },
    error: ApiErrors,
    requiredForClient: true
  }
) {}
