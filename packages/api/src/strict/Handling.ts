import { Context, Effect, type Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { preferenceOf } from "@tidegate/model/Preferences"
import { routeOf } from "../CallTelemetry.ts"
import { type KnownOperation, knownOperation } from "./Operations.ts"
import { type Found, unknownMembers, unknownNames } from "./Unknown.ts"

/**
 * Unknown members and parameters are refused, because their writer believes that they have an effect. A caller that sends
 * `Prefer: handling=lenient` (RFC 7240) has them ignored instead.
 */
export interface Handled {
  /** Null: the call is not part of the contract, and nothing is checked. */
  readonly operation: KnownOperation | null
  readonly isLenient: boolean
  /** The part after `?`. */
  readonly query: string
}

/** How the current call is handled. */
export const Handling = Context.Reference<Handled>("@tidegate/api/Handling", {
  defaultValue: () => ({ operation: null, isLenient: false, query: "" })
})

/** How a call is handled, and the answer's header about it. */
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

/** Refuses query parameters that the operation does not have. */
export const judgeQuery: Effect.Effect<void, GatewayError> = Effect.flatMap(
  Handling,
  ({ isLenient, operation, query }) => {
    const known = operation?.query ?? null
    if (known === null || isLenient || query === "") return Effect.void
    const faults = unknownNames(new Set(new URLSearchParams(query).keys()), known, aboutPages)
    return faults.length === 0 ? Effect.void : Effect.fail(invalid(faults))
  }
)

/** Finds unknown members of a body, unless they are to be ignored; and, in any case, numbers where none is possible. */
export const judgeMembers = (body: Schema.JsonObject): Effect.Effect<Found> =>
  Effect.map(Handling, ({ isLenient, operation }) => {
    if (operation === null) return { faults: [], known: body }
    const { body: written, readBack: read } = operation
    return unknownMembers(body, { written, read, isLenient })
  })
