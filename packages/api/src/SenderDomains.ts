import { Context, Effect, type Schema } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Destination } from "@tidegate/model/Destination"
import type { Caller } from "@tidegate/model/Session"

/** Domains that the service itself sends e-mail from, in lower case: only site admins may have destinations send as them. */
export const SenderDomains = Context.Reference<ReadonlySet<string>>("@tidegate/api/SenderDomains", {
  defaultValue: () => new Set<string>()
})

/**
 * The domain of an address, in the one form that a name has on the wire; null when it is none. It judges what is written; what a
 * placeholder stands for cannot change it, because a sender's domain has to be written out.
 */
const domainOf = (address: unknown): string | null => {
  const domain = typeof address === "string" ? address.slice(address.lastIndexOf("@") + 1).trim() : ""
  return domain === "" || domain === address
    ? null
    : (URL.parse(`http://${domain}`)?.hostname.replace(/\.$/, "") ?? null)
}

const isOwn = (own: ReadonlySet<string>, address: unknown): boolean => {
  const domain = domainOf(address)
  return domain !== null && [...own].some((one) => domain === one || domain.endsWith(`.${one}`))
}

const isObject = (value: unknown): value is Schema.JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Fails when a caller writes a destination that sends as the service itself and is not one who runs it: neither to say so nor to change
 * what such a one sends, and to whom. `stored`: what is changed; null for a new one.
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
  if (!senders.some((one) => isOwn(own, one))) return
  const message = "only site admins may have e-mail sent from a domain of the service itself"
  yield* fail("ROLE_REQUIRED", message, { required: "admin", path: "config.from" })
})
