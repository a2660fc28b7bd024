import { Schema } from "effect"
import { Values } from "@tidegate/model/Values"

/**
 * The write bodies, for documentation and typed clients: the resource's owner checks what it is sent, member by member,
 * and tells every member that is wrong. Unknown members are ignored.
 */
const open = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Json)])

const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const name = Schema.String.annotate({ description: "1 to 155 characters, unique in the team", examples: ["orders"] })
const description = optional(Schema.NullOr(Schema.String))
const config = (settings: string) =>
  optional(Schema.JsonObject.annotate({ description: `${settings}. Each may also stand at the top level` }))

const source = {
  description,
  type: optional(Schema.String.annotate({ description: "WEBHOOK unless told, or a provider's type" })),
  status: optional(Schema.Literals(["enabled", "disabled"])),
  url: optional(Schema.NullOr(Schema.String)),
  config: config("auth_type, auth, allowed_http_methods, custom_response, mode, proxy, chat_defer_ephemeral")
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
  type: optional(Schema.String.annotate({ description: "HTTP unless told, or MOCK_API" })),
  config: config(
    "url (a MOCK_API: path), http_method, path_forwarding_disabled, forward_credentials, rate_limit, rate_limit_period, auth_type, auth"
  )
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

const code = Schema.String.annotate({
  description: "JavaScript that calls addHandler with what makes one request of another; at most 1 MiB",
  examples: ['addHandler("transform", (request, context) => ({ ...request, path: "/orders" }))']
})
const env = optional(
  Schema.NullOr(Schema.Record(Schema.String, Schema.String)).annotate({
    description: "Variables, as process.env and context.env; replaced whole. At most 100, and 64 KiB"
  })
)

export const TransformationWrite = open({ name, code, env }).annotate({ identifier: "TransformationWrite" })
export const TransformationPatch = open({ name: optional(name), code: optional(code), env }).annotate({
  identifier: "TransformationPatch"
})

export const TransformationRunInput = open({
  transformation_id: optional(Schema.NullOr(Schema.String).annotate({ description: "Goes before code" })),
  code: optional(code),
  env: optional(
    Schema.NullOr(Schema.Record(Schema.String, Schema.String)).annotate({
      description: "Instead of the variables that are stored with the transformation"
    })
  ),
  request: optional(
    open({
      headers: optional(Values),
      body: optional(Schema.Json),
      query: optional(
        Schema.Json.annotate({ description: "A query string or an object; the answer has it in the same form" })
      ),
      path: optional(Schema.String),
      method: optional(Schema.String)
    })
  ),
  timestamp: optional(Schema.String.annotate({ format: "date-time" })),
  context: optional(Schema.JsonObject.annotate({ description: "connection_id, source_id, destination_id, request_id" }))
}).annotate({
  identifier: "TransformationRunInput",
  examples: [
    {
      code: 'addHandler("transform", (request, context) => request)',
      request: {
        headers: { "content-type": "application/json" },
        body: { a: 1 },
        query: { q: "1" },
        path: "/",
        method: "POST"
      }
    }
  ]
})

const moment = optional(Schema.NullOr(Schema.String.annotate({ format: "date-time" })))
const connection = {
  description,
  disabled_at: moment,
  paused_at: moment,
  rules: optional(
    Schema.Array(Schema.JsonObject).annotate({
      description: "Of the types deduplicate, transform, filter, delay and retry",
      examples: [
        [
          { type: "deduplicate", window: 60_000, include_fields: ["body.id"] },
          { type: "transform", transformation_id: "trs_…" },
          { type: "filter", body: { type: { $in: ["order.created"] } } },
          { type: "delay", delay: 5_000 },
          { type: "retry", strategy: "exponential", count: 5, interval: 60_000 }
        ]
      ]
    })
  )
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
