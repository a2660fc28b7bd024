import type { Client } from "@tidegate/client/source"
import { hasCredentials, type Kind, kindOf, kinds, singular } from "./Entries.ts"
import { type Inventory, takeInventory } from "./Inventory.ts"
import type { Entry } from "./Kind.ts"
import { referrer } from "./Secrets.ts"
import { isObject, type Json, type JsonObject, textOf } from "./Json.ts"

/** The names of an authentication mode's credentials, by provider and mode. */
type CredentialNames = ReadonlyMap<string, ReadonlyArray<string>>

const modeIn = (provider: Json | undefined, mode: Json | undefined): string => `${textOf(provider)} ${textOf(mode)}`

/** Credentials of actions are never shown, so the catalog says which there are. It is read only if an action has some. */
const credentialNames = async (
  client: Client,
  { actions }: Inventory,
  signal: AbortSignal
): Promise<CredentialNames> => {
  if (![...actions.values()].some(({ row }) => hasCredentials(row))) return new Map()
  const { models } = await client.get("/action-providers", { signal })
  const names = new Map<string, Array<string>>()
  for (const { auth, key } of models) {
    for (const field of auth.credential_fields) {
      for (const mode of field.modes) {
        const at = modeIn(key, mode)
        names.set(at, [...(names.get(at) ?? []), field.key])
      }
    }
  }
  return names
}

const mask = "****"

/** The settings of an action with a mask for each of its credentials. */
const withCredentials = (kind: Kind, config: Json, row: JsonObject, names: CredentialNames): Json => {
  if (kind !== "actions" || !isObject(config) || !hasCredentials(row)) return config
  const fields = names.get(modeIn(row["provider_key"], config["auth_mode"])) ?? []
  return { ...config, credentials: Object.fromEntries(fields.map((field) => [field, mask])) }
}

/** All resources, by name. Masked values, environment variables of transformations, and credentials become references. */
export const exported = async (
  client: Client,
  signal: AbortSignal
): Promise<{
  readonly document: JsonObject
  readonly variables: number
}> => {
  const inventory = await takeInventory(client, signal)
  const credentials = await credentialNames(client, inventory, signal)
  const { hide, names } = referrer()
  const withoutSecrets = (kind: Kind, { name, ...rest }: Entry, row: JsonObject): Json => {
    const at = [singular[kind], name]
    const { config, env, ...others } = rest
    const graph = kind === "workflows" ? hide(others, at) : others
    return {
      name,
      ...(isObject(graph) ? graph : {}),
      ...(env === undefined ? {} : { env: hide(env, at, () => true) }),
      ...(config === undefined ? {} : { config: hide(withCredentials(kind, config, row, credentials), at) })
    }
  }
  const lists = kinds.map((kind) => {
    const { write = (entry: Entry) => entry } = kindOf(kind)
    return [kind, [...inventory[kind].values()].map(({ entry, row }) => withoutSecrets(kind, write(entry), row))]
  })
  return { document: { version: 1, ...(Object.fromEntries(lists) as JsonObject) }, variables: names.size }
}
