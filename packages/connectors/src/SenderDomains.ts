import { Context } from "effect"

/**
 * Domains that the service itself sends e-mail from, in lower case: only site admins may have destinations send as them, and steps of workflows
 * never do.
 */
export const SenderDomains = Context.Reference<ReadonlySet<string>>("@tidegate/connectors/SenderDomains", {
  defaultValue: () => new Set<string>()
})

/** The domain of an address, in the one form that a name has on the wire; null when it is none. */
const domainOf = (address: unknown): string | null => {
  const domain = typeof address === "string" ? address.slice(address.lastIndexOf("@") + 1).trim() : ""
  return domain === "" || domain === address
    ? null
    : (URL.parse(`http://${domain}`)?.hostname.replace(/\.$/, "") ?? null)
}

/** Whether it is of one of these domains, or of one below. */
export const isOfDomains = (own: ReadonlySet<string>, address: unknown): boolean => {
  if (own.size === 0) return false
  const domain = domainOf(address)
  return domain !== null && [...own].some((one) => domain === one || domain.endsWith(`.${one}`))
}
