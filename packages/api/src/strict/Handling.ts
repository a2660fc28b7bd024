import { Context, Effect, type Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { preferenceOf } from "@tidegate/model/Preferences"
import { routeOf } from "../CallTelemetry.ts"
import { type KnownOperation, knownOperation } from "./Operations.ts"
import { type Found, unknownMembers, unknownNames } from "./Unknown.ts"

/**
 * Members and parameters that nobody knows are refused, because whoever wrote them believes that they decide something. A caller that
 * says `Prefer: handling=lenient` (RFC 7240) has them left out instead.
 */
export interface Handled {
  /** Null: the call is not of the contract, and nothing is judged. */
  readonly operation: KnownOperation | null
  readonly isLenient: boolean
  /** What stands behind `?`. */
  readonly query: string
}

/** How the call that is being answered is handled. */
export const Handling = Context.Reference<Handled>("@tidegate/api/Handling", {
  defaultValue: () => ({ operation: null, isLenient: false, query: "" })
})

/** How a call is handled, and what its answer says of it. */
export const handlingOf = ({ headers, method, url }: HttpServerRequest.HttpServerRequest) => {
  const [path = "", query = ""] = url.split(/\?(.*)/s, 2)
  const operation = knownOperation(method, routeOf(path).path) ?? null
  const asked = preferenceOf(headers["prefer"], "handling")?.toLowerCase()
  const isApplied = operation !== null && (asked === "lenient" || asked === "strict")
  const handled: Handled = { operation, query, isLenient: asked === "lenient" }
  const answered: Record<string, string> = isApplied ? { "preference-applied": `handling=${asked}` } : {}
  return { handled, answered }
}

const pages: ReadonlySet<string> = new Set(["cursor", "next", "prev"])

/** Who gives a cursor to what has no pages learns that, and not which name is near. */
const aboutPages = (name: string): string | null =>
  pages.has(name) ? "is not for this call, which does not take a cursor of this name" : null

/** Refuses the query parameters that the operation does not have. */
export const judgeQuery: Effect.Effect<void, GatewayError> = Effect.flatMap(
  Handling,
  ({ isLenient, operation, query }) => {
    const known = operation?.query ?? null
    if (known === null || isLenient || query === "") return Effect.void
    const faults = unknownNames(new Set(new URLSearchParams(query).keys()), known, aboutPages)
    return faults.length === 0 ? Effect.void : Effect.fail(invalid(faults))
  }
)

/** What nobody knows of a body, where that is not left out; and numbers where there can be none, however it is handled. */
export const judgeMembers = (body: Schema.JsonObject): Effect.Effect<Found> =>
  Effect.map(Handling, ({ isLenient, operation }) => {
    if (operation === null) return { faults: [], known: body }
    const { body: written, readBack: read } = operation
    return unknownMembers(body, { written, read, isLenient })
  })
