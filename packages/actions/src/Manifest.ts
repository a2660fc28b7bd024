import { createHash } from "node:crypto"
import type { Schema } from "effect"
import { listed } from "@tidegate/model/Lists"
import { callingProviders } from "./Providers.ts"
import type { AuthMode, Provider, ProviderAction } from "./Provider.ts"
import { formatter } from "./providers/Formatter.ts"

/** Every provider of actions. */
export const providers: ReadonlyArray<Provider> = [formatter, ...callingProviders]

const fieldOf = (field: AuthMode["fields"][number], modes: ReadonlyArray<string>): Schema.JsonObject => ({
  key: field.key,
  label: field.label,
  type: field.type,
  required: field.required,
  placeholder: null,
  help: field.help,
  modes: [...modes]
})

/** Each member of the credentials once, with the modes that use it. */
const fieldsOf = (modes: Provider["auth"]): ReadonlyArray<Schema.JsonObject> => {
  const keys = [...new Set(modes.flatMap(({ fields }) => fields.map(({ key }) => key)))]
  return keys.map((key) => {
    const of = modes.filter(({ fields }) => fields.some((field) => field.key === key))
    const field = of[0]!.fields.find((one) => one.key === key)!
    return fieldOf(
      field,
      of.map((mode) => mode.key)
    )
  })
}

const actionOf = (provider: Provider, action: ProviderAction): Schema.JsonObject => ({
  key: action.key,
  provider_key: provider.key,
  name: action.name,
  description: action.description,
  category: action.category,
  required_permissions: [],
  required_oauth_scopes: [],
  version: action.version,
  transport: action.call === null ? "local" : "api",
  auth_modes: provider.auth.map(({ key }) => key),
  default_auth_mode: provider.auth[0].key,
  input_schema: action.input,
  output_schema: action.output,
  primary_output: action.primary_output,
  input_sample: action.sample.inputs,
  output_sample: action.sample.output,
  rate_limit: action.rate_limit
})

const entryOf = (provider: Provider): Schema.JsonObject => {
  const { actions, auth, description, icon_key, key, manifest_version, name } = provider
  const modes = auth.map((mode) => mode.key)
  const isAccount = modes.includes("account")
  const isOpen = modes.every((mode) => mode === "none") && auth.every(({ fields }) => fields.length === 0)
  return {
    key,
    name,
    description,
    icon_key,
    manifest_version,
    config_version: 1,
    capabilities: ["actions"],
    auth: isOpen
      ? { type: "none", provider_key: key, connection_type: "none", credential_fields: [], modes }
      : {
          type: isAccount ? "account" : "api_key",
          provider_key: key,
          connection_type: isAccount ? "account" : "api_key",
          credential_fields: [...fieldsOf(auth)],
          modes
        },
    actions: actions.map((action) => actionOf(provider, action))
  }
}

const made = listed(providers.map(entryOf), null)

/** The catalog of providers and actions, made from the rows. */
export const manifest: Schema.JsonObject = { ...made }

/** Changes when anything in the catalog changes. */
export const manifestHash = createHash("sha256").update(JSON.stringify(made)).digest("hex").slice(0, 32)
