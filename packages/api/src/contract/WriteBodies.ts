import { Schema } from "effect"

/**
 * The write bodies, for documentation and typed clients: the resource's owner checks what it is sent, member by member,
 * and tells every member that is wrong. Unknown members are ignored.
 */
const open = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Json)])

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const name = Schema.String.annotate({ description: "1 to 155 characters, unique in the team", examples: ["orders"] })
const description = optional(Schema.NullOr(Schema.String))
const config = optional(
  Schema.JsonObject.annotate({ description: "The settings; each may also stand at the top level" })
)

const source = {
  description,
  type: optional(Schema.String.annotate({ description: "WEBHOOK unless told, or a provider's type" })),
  status: optional(Schema.Literals(["enabled", "disabled"])),
  url: optional(Schema.NullOr(Schema.String)),
  config
}

export const SourceWrite = open({ name, ...source }).annotate({
  identifier: "SourceWrite",
  examples: [
    {
      name: "orders",
      config: { auth_type: "HMAC", auth: { webhook_secret_key: "a long secret", header_key: "x-signature" } }
    }
  ]
})
export const SourcePatch = open({ name: optional(name), ...source }).annotate({ identifier: "SourcePatch" })

const destination = {
  description,
  type: optional(Schema.String.annotate({ description: "HTTP unless told" })),
  config
}

export const DestinationWrite = open({ name, ...destination }).annotate({
  identifier: "DestinationWrite",
  examples: [
    {
      name: "orders-api",
      type: "HTTP",
      config: { url: "https://api.example.com/hooks", rate_limit: 10, rate_limit_period: "second" }
    }
  ]
})
export const DestinationPatch = open({ name: optional(name), ...destination }).annotate({
  identifier: "DestinationPatch"
})

const moment = optional(Schema.NullOr(Schema.String.annotate({ format: "date-time" })))
const connection = {
  description,
  disabled_at: moment,
  paused_at: moment,
  rules: optional(Schema.Array(Schema.JsonObject))
}
const endpoint = Schema.String.annotate({ description: "May also be given as an object with an id" })

export const ConnectionWrite = open({
  name,
  source_id: optional(endpoint),
  destination_id: optional(endpoint),
  ...connection
}).annotate({
  identifier: "ConnectionWrite",
  examples: [
    {
      name: "orders-to-api",
      source_id: "src_…",
      destination_id: "des_…",
      rules: [{ type: "retry", strategy: "exponential", count: 5, interval: 60_000 }]
    }
  ]
})

export const ConnectionUpsert = open({
  id: optional(Schema.String.annotate({ description: "Selects the connection; else source_id and name do" })),
  name: optional(name),
  source_id: optional(endpoint),
  destination_id: optional(endpoint),
  ...connection
}).annotate({ identifier: "ConnectionUpsert" })

export const ConnectionPatch = open({
  name: optional(name),
  source_id: optional(endpoint),
  destination_id: optional(endpoint),
  ...connection
}).annotate({ identifier: "ConnectionPatch" })
