import { createHash } from "node:crypto"
import type { Schema } from "effect"
import { settingsSchema } from "@tidegate/connectors/Settings"
import { listed } from "@tidegate/model/Lists"
import type { AccountKind, SourceProvider } from "./SourceProvider.ts"
import { type Definition, definitionsOf, pairKeyOf } from "./SourceProviders.ts"

/** The catalog of source providers, made from their rows. */

const definitionEntry = ({ key, mode, provider, trigger }: Definition): Schema.JsonObject => ({
  key,
  provider_key: provider.key,
  name: trigger.name,
  description: trigger.description,
  category: trigger.category,
  delivery_mode: mode,
  pair_key: pairKeyOf(provider, trigger),
  version: trigger.version,
  available: true,
  required_scopes: [...trigger.requiredScopes],
  config_schema: settingsSchema(trigger.inputs),
  output_schema: trigger.output,
  export_path: "body",
  primary_output: trigger.primaryOutput,
  sample: trigger.sample
})

const none = { base_url: null, self_hosted: false, scopes: [] }

const authOf = (key: string, account: AccountKind | null): Schema.JsonObject => {
  if (account === null) {
    return { type: "none", provider_key: key, connection_type: "none", credential_fields: [], modes: ["none"], ...none }
  }
  const { connections, fields, oauth2, origin, selfHosted } = account
  return {
    type: connections[0],
    provider_key: key,
    connection_type: connections[0],
    credential_fields: fields.map(({ help, key: name, label, required, type }) => ({
      key: name,
      label,
      type,
      required,
      placeholder: null,
      help,
      modes: ["api_key"]
    })),
    modes: [...connections],
    base_url: origin,
    self_hosted: selfHosted,
    scopes: [...(oauth2?.scopes ?? [])]
  }
}

const entryOf = (provider: SourceProvider): Schema.JsonObject => {
  const { account, description, icon_key, key, manifest_version, name } = provider
  return {
    key,
    name,
    description,
    icon_key,
    manifest_version,
    config_version: 1,
    capabilities: ["sources"],
    auth: authOf(key, account),
    definitions: definitionsOf(provider).map(definitionEntry)
  }
}

/** The catalog, and a hash that changes when anything in it changes. */
export const sourceCatalog = (providers: ReadonlyArray<SourceProvider>) => {
  const manifest = listed(providers.map(entryOf), null)
  const hash = createHash("sha256").update(JSON.stringify(manifest)).digest("hex").slice(0, 32)
  return { manifest, hash }
}
