import type { Client } from "@tidegate/client/source"

/* Accounts at providers, which files name by provider and name: `google/Ada`. Several accounts may have the same name. */

/** The ids of the accounts that are not revoked, by provider and name. */
export const accountsByName = async (
  client: Client,
  signal: AbortSignal
): Promise<ReadonlyMap<string, ReadonlyArray<string>>> => {
  const found = new Map<string, Array<string>>()
  for await (const { id, name, provider_key, revoked_at } of client.list("/provider-accounts", { signal })) {
    if (revoked_at !== null) continue
    const full = `${provider_key}/${name}`
    found.set(full, [...(found.get(full) ?? []), id])
  }
  return found
}

export const noAccount = (name: string): string => {
  const [provider = name] = name.split("/")
  return `there is no provider account ${name}: connect an account at ${provider} with this name, or write the id of another one`
}

export const severalAccounts = (name: string, count: number): string =>
  `there are ${count} provider accounts ${name}: write the id of one of them instead`
