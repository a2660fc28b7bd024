import type { Client } from "@tidegate/client/source"
import { type Entry, type Kind, kinds, singular } from "./Entries.ts"
import { takeInventory } from "./Inventory.ts"
import { referrer } from "./Secrets.ts"
import type { Json, JsonObject } from "./Yaml.ts"

/** All resources, by name. Masked values, and all environment variables of transformations, become references. */
export const exported = async (
  client: Client,
  signal: AbortSignal
): Promise<{ readonly document: JsonObject; readonly variables: number }> => {
  const inventory = await takeInventory(client, signal)
  const { hide, names } = referrer()
  const withoutSecrets = (kind: Kind, { config, env, name, ...rest }: Entry): Json => {
    const at = [singular[kind], name]
    return {
      name,
      ...rest,
      ...(env === undefined ? {} : { env: hide(env, at, () => true) }),
      ...(config === undefined ? {} : { config: hide(config, at) })
    }
  }
  const lists = kinds.map((kind) => [
    kind,
    [...inventory[kind].values()].map(({ entry }) => withoutSecrets(kind, entry))
  ])
  return { document: { version: 1, ...(Object.fromEntries(lists) as JsonObject) }, variables: names.size }
}
