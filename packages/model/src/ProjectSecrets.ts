import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

const About = {
  masked_value: Schema.String.annotate({ description: "The prefix and the last four characters" }),
  has_secret: Schema.Boolean,
  last_rotated_at: Timestamp
}

const ProjectSecret = Schema.Struct(About).annotate({ identifier: "ProjectSecret" })

const RotatedSecret = Schema.Struct({
  ...About,
  value: Schema.optionalKey(Schema.String.annotate({ description: "The new value, which is shown only once" }))
}).annotate({ identifier: "RotatedSecret" })

const RotatedSigningSecret = Schema.Struct({
  ...RotatedSecret.fields,
  whsec_value: Schema.optionalKey(
    Schema.String.annotate({
      description: "The same secret in the form of Standard Webhooks libraries (whsec_ and base64), shown only once"
    })
  )
}).annotate({ identifier: "RotatedSigningSecret" })

const Pair = { team_id: Schema.String, created_at: Timestamp, updated_at: Timestamp }

/** The names of a team's secrets. */
export const SecretName = Schema.Literals(["api_key", "signing_secret"])
export type SecretName = typeof SecretName.Type

/** A team's API key and signing secret, in readable form. */
export const ProjectSecrets = Schema.Struct({
  ...Pair,
  api_key: ProjectSecret,
  signing_secret: ProjectSecret
}).annotate({
  identifier: "ProjectSecrets",
  description: "The team's API key and signing secret."
})
export type ProjectSecrets = typeof ProjectSecrets.Type

/** The same with the new values. */
export const RotatedSecrets = Schema.Struct({
  ...Pair,
  api_key: RotatedSecret,
  signing_secret: RotatedSigningSecret
}).annotate({
  identifier: "RotatedSecrets",
  description: "The team's API key and signing secret, with their new values."
})
export type RotatedSecrets = typeof RotatedSecrets.Type
