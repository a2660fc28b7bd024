import { Schema } from "effect"
import { credentialField, JsonSchema, Members, providerMembers } from "./Catalog.ts"
import { listOf, nothing } from "./Lists.ts"

/** The catalog of source providers, as the API documents it. The rows of the providers have its values. */

const Field = Schema.Struct({
  ...credentialField,
  modes: Schema.Array(Schema.String)
}).annotate({ identifier: "SourceCredentialField" })

const Mode = Schema.Literals(["none", "oauth2", "api_key"])

const Auth = Schema.Struct({
  type: Mode.annotate({ description: "The usual way to connect an account. none: the provider needs no account" }),
  provider_key: Schema.String,
  connection_type: Mode,
  credential_fields: Schema.Array(Field),
  modes: Schema.Array(Mode),
  base_url: Schema.NullOr(Schema.String).annotate({ description: "The API of the provider" }),
  self_hosted: Schema.Boolean.annotate({ description: "Whether an account may have a base_url of its own" }),
  scopes: Schema.Array(Schema.String).annotate({ description: "The scopes that a consent asks for by default" })
}).annotate({ identifier: "SourceProviderAuth" })

const Definition = Schema.Struct({
  key: Schema.String,
  provider_key: Schema.String,
  name: Schema.String,
  description: Schema.String,
  category: Schema.String,
  delivery_mode: Schema.Literals(["instant", "polling"]),
  pair_key: Schema.String.annotate({
    description: "The instant and the polling definition of one trigger have the same"
  }),
  version: Schema.String,
  available: Schema.Boolean,
  required_scopes: Schema.Array(Schema.String),
  config_schema: JsonSchema,
  output_schema: JsonSchema,
  export_path: Schema.String.annotate({ description: "Where a request of the source has the item" }),
  primary_output: Schema.NullOr(Schema.String),
  sample: Schema.Struct({ inputs: Members(1_000), output: Members(1_000) })
}).annotate({ identifier: "SourceDefinition" })

const Provider = Schema.Struct({
  ...providerMembers,
  auth: Auth,
  definitions: Schema.Array(Definition)
}).annotate({ identifier: "SourceProvider" })

/** The catalog. */
export const SourceProviders = listOf(Provider, nothing).annotate({ identifier: "SourceProviders" })
