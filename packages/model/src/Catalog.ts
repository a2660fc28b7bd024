import { Schema } from "effect"

/** What the catalogs of action providers and of source providers have in common. */

/** An object with at most that many members. */
export const Members = (max: number) =>
  Schema.JsonObject.annotate({ message: "must be an object" }).check(
    Schema.isMaxProperties(max, { message: `must have at most ${max} members` })
  )

export const JsonSchema = Members(1_000).annotate({ description: "JSON Schema" })

/** The members of a field of credentials, beside its modes. */
export const credentialField = {
  key: Schema.String,
  label: Schema.String,
  type: Schema.Literals(["secret", "text"]),
  required: Schema.Boolean,
  placeholder: Schema.NullOr(Schema.String),
  help: Schema.NullOr(Schema.String)
}

/** The members of a provider, beside its account and what it offers. */
export const providerMembers = {
  key: Schema.String,
  name: Schema.String,
  description: Schema.String,
  icon_key: Schema.String,
  manifest_version: Schema.String,
  config_version: Schema.Int,
  capabilities: Schema.Array(Schema.String)
}
