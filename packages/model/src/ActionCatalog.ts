import { Schema } from "effect"
import { credentialField, JsonSchema, Members, providerMembers } from "./Catalog.ts"
import * as Characters from "./Characters.ts"
import { listOf, nothing } from "./Lists.ts"

/** The choices for a workflow's steps, as the API documents them. The list of providers has their values. */

const CredentialField = Schema.Struct({
  ...credentialField,
  modes: Schema.Array(Schema.String).annotate({ description: "The auth_mode of these credentials" })
}).annotate({ identifier: "ActionCredentialField" })

const Auth = Schema.Struct({
  type: Schema.Literals(["none", "api_key", "account"]).annotate({
    description: "account: the action names a provider account"
  }),
  provider_key: Schema.String,
  connection_type: Schema.Literals(["none", "api_key", "account"]),
  credential_fields: Schema.Array(CredentialField),
  modes: Schema.Array(Schema.String)
}).annotate({ identifier: "ActionProviderAuth" })

const CatalogAction = Schema.Struct({
  key: Schema.String,
  provider_key: Schema.String,
  name: Schema.String,
  description: Schema.String,
  category: Schema.String,
  required_permissions: Schema.Array(Schema.String),
  required_oauth_scopes: Schema.Array(Schema.String),
  version: Schema.String,
  transport: Schema.Literals(["api", "local"]).annotate({
    description: "`local`: the action stays within the gateway"
  }),
  auth_modes: Schema.Array(Schema.String),
  default_auth_mode: Schema.String,
  input_schema: JsonSchema,
  output_schema: JsonSchema,
  primary_output: Schema.NullOr(Schema.String),
  input_sample: Members(1_000),
  output_sample: Members(1_000),
  rate_limit: Schema.NullOr(
    Schema.Struct({
      requests: Schema.Int.annotate({ description: "Requests per `period`" }),
      period: Schema.String.annotate({ description: "A unit of time: `second`, `minute`, `hour` or `day`" })
    })
  ).annotate({
    description: "Requests that the API allows per second, minute, hour or day. Null: no limit is known"
  })
}).annotate({ identifier: "CatalogAction" })

const Provider = Schema.Struct({
  ...providerMembers,
  auth: Auth,
  actions: Schema.Array(CatalogAction)
}).annotate({ identifier: "ActionProvider" })

/** The catalog. */
export const ActionProviders = listOf(Provider, nothing).annotate({
  identifier: "ActionProviders"
})

const text = (longest: number) =>
  Schema.String.annotate({ message: "must be a string" }).check(Characters.upTo(longest))
const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const object = Members(50)
const limit = "must be a whole number from 1 to 100"

/** The question: which choices an input has. */
export const ActionOptionsInput = Schema.Struct({
  provider_key: text(96),
  resource: text(96).annotate({ description: "The kind of choices. See the guide" }),
  auth_mode: optional(text(96)),
  provider_account_id: optional(text(96)),
  action_id: optional(text(96).annotate({ description: "The id of an existing saved action" })),
  credentials: optional(object),
  query: optional(text(200).annotate({ description: "Part of a name or an id, without regard to case" })),
  cursor: optional(text(4_096)),
  limit: optional(
    Schema.Number.annotate({ message: limit, description: "Default: 50" }).check(
      Schema.isInt({ message: limit }).abort(),
      Schema.isBetween({ minimum: 1, maximum: 100 }, { message: limit })
    )
  ),
  dependencies: optional(object.annotate({ description: "Earlier choices, if this one depends on them" }))
}).annotate({ identifier: "ActionOptionsInput" })

const Choice = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ActionChoice" })
export type Choice = typeof Choice.Type

/** The choices of an input. */
export const ActionChoices = Schema.Struct({
  models: Schema.Array(Choice),
  next_cursor: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ActionChoices" })
