import { Effect, type Schema } from "effect"
import { isOfDomains } from "@tidegate/connectors/SenderDomains"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Destination } from "@tidegate/model/Destination"
import type { Caller } from "@tidegate/model/Session"

const isObject = (value: unknown): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Fails when a caller who is no site admin writes a destination that sends in the name of the service: they may neither create
 * one nor change what it sends and to whom. `stored`: the destination to change; null for a new one.
 */
export const mayWrite = Effect.fnUntraced(function* <E, R>(
  own: ReadonlySet<string>,
  caller: Caller,
  written: Schema.JsonObject,
  stored: Effect.Effect<Pick<Destination, "config">, E, R> | null
): Effect.fn.Return<void, GatewayError | E, R> {
  if (own.size === 0 || (caller.kind === "session" && caller.isSiteAdmin)) return
  const { config, from } = written
  const senders = [from, ...(isObject(config) ? [config["from"]] : [])].filter((one) => one !== undefined)
  if (senders.length === 0 && stored !== null) senders.push((yield* stored).config["from"] as Schema.Json)
  if (!senders.some((one) => isOfDomains(own, one))) return
  const message = "only site admins may have e-mail sent from a domain of the service itself"
  yield* fail("ROLE_REQUIRED", message, { required: "admin", path: "config.from" })
})

/**
 * Fails when inputs of an action would send in the name of the service. Nobody may use that, because steps decide what is sent
 * and to whom; a destination of a site admin can. A template is checked when it is resolved.
 */
export const mayCall = Effect.fnUntraced(function* (
  own: ReadonlySet<string>,
  inputs: unknown
): Effect.fn.Return<void, GatewayError> {
  if (!isObject(inputs) || !isOfDomains(own, inputs["from"])) return
  const message = "no action sends e-mail from a domain of the service itself: a destination of a site admin does"
  yield* fail("ROLE_REQUIRED", message, { required: "admin", path: "config.inputs.from" })
})
