import { Schema } from "effect"
import { DeliveryMethod, Destination, RatePeriod } from "@tidegate/model/Destination"
import { closed, describedAs } from "../DescribedAs.ts"
import { example } from "./Example.ts"
import { Description, HeaderName, HttpUrl, Name, optional, secretText, setting, shownText } from "../Members.ts"

/** Destinations as the document shows them; `DestinationInput` judges what is written. */

/** What the destinations of every type have. */
const settings = {
  http_method: setting(
    DeliveryMethod.annotate({ description: "The method of every delivery; null keeps that of the request" })
  ),
  path_forwarding_disabled: setting(
    Schema.Boolean.annotate({
      description: "Whether the path and the query behind the source's URL are left out",
      default: false
    })
  ),
  forward_credentials: setting(
    Schema.Boolean.annotate({
      description: "Whether deliveries carry the credentials that senders presented",
      default: true
    })
  ),
  rate_limit: setting(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
      description: "Deliveries in a period; null: as many as the target takes"
    })
  ),
  rate_limit_period: setting(RatePeriod.annotate({ default: "second" }))
}

const url = HttpUrl(4096).annotate({
  description: "Where to; without a fragment, a user name or a password",
  examples: ["https://api.example.com/hooks"]
})
const path = Schema.String.check(Schema.isPattern(/^\/[^\s#]{0,2047}$/u)).annotate({
  description: "What the mock is called with; `/status/{code}` makes it answer that",
  default: "/"
})

const disabled = optional(Schema.Boolean.annotate({ description: "true: as if there were no auth" }))

const headerName = HeaderName.annotate({ description: "None that HTTP or the gateway sets", examples: ["x-token"] })
const headerValue = secretText("The header's value: printable ASCII").check(
  Schema.isPattern(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/u)
)

/** How deliveries authenticate, by `auth_type`. */
const auths = [
  {
    auth_type: setting(Schema.Literals(["NO_AUTH"])),
    auth: setting(Schema.Struct({ disabled }).check(closed))
  },
  {
    auth_type: Schema.Literal("SERVICE_SIGNATURE").annotate({
      description: "Signed with the team's secret: webhook-id, webhook-timestamp, webhook-signature"
    }),
    auth: setting(Schema.Struct({ disabled }).check(closed))
  },
  {
    auth_type: Schema.Literal("CUSTOM_HEADER"),
    auth: Schema.Union([
      Schema.Struct({ header_name: headerName, value: headerValue, disabled }),
      Schema.Struct({
        header_name: optional(headerName),
        value: optional(headerValue),
        disabled: Schema.Literal(true)
      })
    ])
  }
] as const

const [noAuth, signed, customHeader] = auths

/** The other type's. */
const none = optional(Schema.Null)

const HttpConfig = Schema.Union([
  Schema.Struct({ url, path: none, ...settings, ...noAuth }),
  Schema.Struct({ url, path: none, ...settings, ...signed }),
  Schema.Struct({ url, path: none, ...settings, ...customHeader })
]).annotate({ identifier: "HttpDestinationConfig" })

const MockConfig = Schema.Union([
  Schema.Struct({ path: setting(path), url: none, ...settings, ...noAuth }),
  Schema.Struct({ path: setting(path), url: none, ...settings, ...signed }),
  Schema.Struct({ path: setting(path), url: none, ...settings, ...customHeader })
]).annotate({ identifier: "MockApiDestinationConfig" })

const members = { name: Name, description: optional(Description) }

const HttpWrite = Schema.Struct({
  ...members,
  type: optional(Schema.Literal("HTTP").annotate({ description: "HTTP unless told" })),
  config: HttpConfig
}).annotate({ identifier: "HttpDestinationWrite", description: "Delivers to a URL.", examples: [example.body] })

const MockWrite = Schema.Struct({
  ...members,
  type: Schema.Literal("MOCK_API"),
  config: optional(MockConfig)
}).annotate({
  identifier: "MockApiDestinationWrite",
  description: "Delivers to nobody: it answers 200, and echoes.",
  examples: [{ name: "mock", type: "MOCK_API" }]
})

export const DestinationWrite = Schema.Union([HttpWrite, MockWrite]).annotate({
  identifier: "DestinationWrite",
  description: "By type. The members of config may also stand at the top level."
})

export const DestinationPatch = Schema.Struct({
  name: optional(Name),
  description: optional(Description),
  type: optional(Schema.Literals(["HTTP", "MOCK_API"])),
  config: optional(
    Schema.Struct({
      url: optional(url),
      path: setting(path),
      ...settings,
      auth_type: setting(Schema.Literals(["NO_AUTH", "SERVICE_SIGNATURE", "CUSTOM_HEADER"])),
      auth: setting(
        Schema.Union([customHeader.auth.members[0], customHeader.auth.members[1], Schema.Struct({ disabled })])
      )
    }).annotate({ identifier: "DestinationConfigPatch" })
  )
}).annotate({
  identifier: "DestinationPatch",
  description: "What is given is merged into what is there; auth is replaced whole.",
  examples: [{ config: { rate_limit: 5 } }]
})

const shown = {
  url: optional(Schema.String.annotate({ format: "uri" })),
  path: optional(Schema.String),
  http_method: Schema.NullOr(DeliveryMethod),
  path_forwarding_disabled: Schema.Boolean,
  forward_credentials: Schema.Boolean,
  rate_limit: Schema.NullOr(Schema.Int),
  rate_limit_period: RatePeriod
}

const ShownConfig = Schema.Union([
  Schema.Struct({
    ...shown,
    auth_type: Schema.NullOr(Schema.Literals(["NO_AUTH", "SERVICE_SIGNATURE"])),
    auth: Schema.Struct({ disabled })
  }),
  Schema.Struct({
    ...shown,
    auth_type: Schema.Literal("CUSTOM_HEADER"),
    auth: Schema.Struct({ header_name: shownText, value: shownText, disabled })
  })
]).annotate({ identifier: "DestinationConfig" })

/** A destination as it is answered. */
export const DestinationRecord = Schema.Struct({
  ...Destination.fields,
  config: Destination.fields.config.pipe(describedAs(ShownConfig))
}).annotate({
  identifier: "Destination",
  description:
    "A destination; secrets are masked. attempts_24h_bins: six buckets of four hours, the oldest first, the last one ending now.",
  examples: [example.record]
})
