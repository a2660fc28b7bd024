import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { fail } from "@tidegate/model/GatewayError"
import { pageHeader } from "./SealedCookies.ts"

/** For the dashboard's own routes: whoever does not call from its page finds nothing there. */
export const ofOwnPage = ({ headers }: HttpServerRequest.HttpServerRequest): Effect.Effect<void> =>
  headers[pageHeader] === undefined
    ? Effect.die(fail("ROUTE_NOT_FOUND", `only the dashboard calls this, with the header ${pageHeader}`))
    : Effect.void
