import { Context } from "effect"

/**
 * Domains from which the service itself sends e-mail, in lower case: only site admins may create destinations that send from them, and
 * workflow steps never may.
 */
export const SenderDomains = Context.Reference<ReadonlySet<string>>("@tidegate/connectors/SenderDomains", {
  defaultValue: () => new Set<string>()
})

/** The domain of an address, in its DNS form; null if there is none. */
const domainOf = (address: unknown): string | null => {
  const domain = typeof address === "string" ? address.slice(address.lastIndexOf("@") + 1).trim() : ""
  return domain === "" || domain === address
    ? null
    : (URL.parse(`http://${domain}`)?.hostname.replace(/\.$/, "") ?? null)
}

/** Whether an address is in one of these domains, or in a subdomain. */
export const isOfDomains = (own: ReadonlySet<string>, address: unknown): boolean => {
  if (own.size === 0) return false
  const domain = domainOf(address)
  return domain !== null && [...own].some((one) => domain === one || domain.endsWith(`.${one}`))
}
