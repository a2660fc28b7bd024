import { Schema } from "effect"
import { brokerAuthTypes, SubscriptionState } from "./BrokerSource.ts"
import { Channel, DeliveryMode, Schedule } from "./Channel.ts"
import { RatePeriod } from "./Destination.ts"
import { ProviderSettings } from "./ProviderSource.ts"
import { ScheduleSettings } from "./ScheduledSource.ts"
import { Timestamp } from "./Timestamp.ts"

/** The HTTP methods a source can accept. */
export const SourceMethod = Schema.Literals(["HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"])
export type SourceMethod = typeof SourceMethod.Type

/** How a source verifies its requests, or signs in at its broker; null: it does not. */
export const SourceAuthType = Schema.Literals(["BASIC_AUTH", "API_KEY", "HMAC", ...brokerAuthTypes])
export type SourceAuthType = typeof SourceAuthType.Type

/** A setting that may be absent or null: both mean its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  Schema.optionalKey(Schema.NullOr(schema).annotate({ message }))

const condition = setting(Schema.Json, "must be a JSON value")
const statusMessage = "must be a whole number from 200 to 599"

/** `application/json`, `text/plain` or `application/xml`, each in UTF-8. */
export const ResponseContentType = Schema.Literals(["json", "text", "xml"]).annotate({
  message: "must be json, text or xml"
})
export type ResponseContentType = typeof ResponseContentType.Type

/**
 * The answer to senders instead of the plain acknowledgement. The first enabled rule whose `match` holds decides; otherwise
 * `body`, with status 200. Bodies and header values may contain placeholders like `{{body.order.id}}`.
 */
export const CustomResponse = Schema.Struct({
  /** Default: `json`. */
  content_type: setting(ResponseContentType, "must be json, text or xml"),
  /** The fallback; without it, requests that match no rule get the plain acknowledgement. */
  body: setting(Schema.String, "must be a string"),
  rules: setting(
    Schema.Array(
      Schema.Struct({
        /** Default: true. */
        enabled: setting(Schema.Boolean, "must be true, false or null"),
        /** Conditions of the filter language, all of which must hold; without any, every request matches. */
        match: setting(
          Schema.Struct({
            method: condition,
            path: condition,
            query: condition,
            headers: condition,
            body: condition
          }),
          "must be an object or null"
        ),
        response: setting(
          Schema.Struct({
            /** Default: 200. */
            status: setting(
              Schema.Number.check(
                Schema.isInt({ message: statusMessage }),
                Schema.isBetween({ minimum: 200, maximum: 599 }, { message: statusMessage })
              ),
              statusMessage
            ),
            /** Default: that of the fallback. */
            content_type: setting(ResponseContentType, "must be json, text or xml"),
            /** Default: empty. */
            body: setting(Schema.String, "must be a string"),
            headers: setting(
              Schema.Record(Schema.String, Schema.String.annotate({ message: "must be a string" })),
              "must be an object of texts"
            )
          }),
          "must be an object or null"
        )
      }).annotate({ message: "must be an object" })
    ),
    "must be an array or null"
  )
}).annotate({ message: "must be an object" })
export interface CustomResponse extends Schema.Schema.Type<typeof CustomResponse> {}

/** How a source in proxy mode reaches its upstream. In webhook mode it is stored but not `enabled`. */
export const ProxySettings = Schema.Struct({
  /** Whether the source's mode is `proxy`. */
  enabled: Schema.Boolean,
  /** An absolute http or https URL. */
  target_url: Schema.String,
  /** Whether the path after the source's URL is appended to the target's. */
  path_forwarding: Schema.Boolean,
  query_forwarding: Schema.Boolean,
  /** Whether the upstream gets the credentials that the source itself verifies. Absent in rows of older versions: false. */
  forward_credentials: Schema.optionalKey(Schema.Boolean),
  timeout_ms: Schema.Int.annotate({ description: "Time limit of the upstream in milliseconds" }),
  capture_response_bytes: Schema.Int.annotate({
    description:
      "Maximum bytes of the upstream's response that are stored with the request. The sender gets the complete response"
  })
})
export interface ProxySettings extends Schema.Schema.Type<typeof ProxySettings> {}

/** A source as the API shows it: secrets in `config.auth` are masked, `status` repeats `disabled_at`. */
export const Source = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  type: Schema.String,
  /** `provider`: its requests are items of a provider, and nobody can send to its URL. */
  input_type: Schema.Literals(["webhook", "provider"]),
  status: Schema.Literals(["enabled", "disabled"]),
  url: Schema.String,
  config: Schema.Struct({
    auth_type: Schema.NullOr(SourceAuthType),
    auth: Schema.JsonObject,
    allowed_http_methods: Schema.Array(SourceMethod),
    custom_response: Schema.NullOr(CustomResponse),
    mode: Schema.Literals(["webhook", "proxy"]),
    proxy: Schema.NullOr(ProxySettings),
    /** Whether the first answer to an interaction of the chat (type DISCORD) is shown to its sender only. */
    chat_defer_ephemeral: Schema.Boolean,
    /** Requests accepted per period; null: unlimited. */
    rate_limit: Schema.NullOr(Schema.Int),
    rate_limit_period: Schema.NullOr(RatePeriod),
    /** Only of a source of type PROVIDER. */
    provider: Schema.optionalKey(ProviderSettings),
    /** Only of a source of type CRON. */
    schedule: Schema.optionalKey(ScheduleSettings),
    /** Only of a source whose requests are messages of a broker: the settings of its type. */
    subscription: Schema.optionalKey(Schema.JsonObject)
  }),
  // The members below are only of sources of type PROVIDER.
  provider_key: Schema.optionalKey(Schema.String),
  definition_key: Schema.optionalKey(Schema.String),
  delivery_mode: Schema.optionalKey(DeliveryMode),
  schedule: Schema.optionalKey(Schedule),
  provider_account_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** Null: it polls by its own choice, and has no channel. */
  channel: Schema.optionalKey(Schema.NullOr(Channel)),
  next_due_at: Schema.optionalKey(
    Schema.NullOr(Timestamp).annotate({
      description:
        "Only of a source of type CRON: when it makes its next request. Null: it is disabled, or there is no such time"
    })
  ),
  subscription_state: Schema.optionalKey(
    SubscriptionState.annotate({ description: "Only of a source whose requests are messages of a broker" })
  ),
  disabled_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Source" })

export interface Source extends Schema.Schema.Type<typeof Source> {}
