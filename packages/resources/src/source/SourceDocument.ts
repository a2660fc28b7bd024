import { Schema } from "effect"
import { brokerAuthTypes } from "@tidegate/model/BrokerSource"
import { RatePeriod } from "@tidegate/model/Destination"
import { ProviderSettings, providerType } from "@tidegate/model/ProviderSource"
import { ScheduleSettings, scheduledType } from "@tidegate/model/ScheduledSource"
import { ProxySettings, Source, SourceMethod } from "@tidegate/model/Source"
import { systemType } from "@tidegate/model/SystemSource"
import { outboundAuthOf } from "@tidegate/outbound-auth/OutboundAuth"
import type { Provider } from "@tidegate/verification/Provider"
import { alsoBeside, describedAs } from "../DescribedAs.ts"
import { Name, optional, setting, shownText } from "../Members.ts"
import { brokerConfigs, credentialsOf, ShownSubscription, WrittenSubscription } from "./Broker.ts"
import { example } from "./Example.ts"
import { itemSettings, members, RateLimit, Response, settings, Type } from "./Members.ts"
import { Empty } from "./Proxy.ts"
import { ApiKeyAuth, BasicAuth, HmacAuth, kinds, tolerance, written } from "./SenderAuth.ts"
import { PatchedSchedule, ScheduledConfig, scheduleExample } from "./Schedule.ts"

/** Sources for the document: the type determines the members of `config.auth`, in more detail than the decoding schema. */

const noAuth = { auth_type: optional(Schema.Null), auth: setting(Empty) }
const basic = { auth_type: Schema.Literal("BASIC_AUTH"), auth: BasicAuth }
const apiKey = { auth_type: Schema.Literal("API_KEY"), auth: ApiKeyAuth }
const hmac = { auth_type: Schema.Literal("HMAC"), auth: HmacAuth }

const Open = Schema.Struct({ ...settings, ...noAuth }).annotate({
  identifier: "OpenSourceConfig",
  description: "Accepts all senders."
})
const Basic = Schema.Struct({ ...settings, ...basic }).annotate({ identifier: "BasicAuthSourceConfig" })
const ApiKey = Schema.Struct({ ...settings, ...apiKey }).annotate({ identifier: "ApiKeySourceConfig" })
const Hmac = Schema.Struct({ ...settings, ...hmac }).annotate({ identifier: "HmacSourceConfig" })

const generic = { BASIC_AUTH: Basic, API_KEY: ApiKey, HMAC: Hmac }

const whole = { name: Name, ...members }

const oneOf = ([first = "", ...rest]: ReadonlyArray<string>) =>
  rest.length === 0 ? Schema.Literal(first) : Schema.Literals([first, ...rest])

const reservedTypes = [
  providerType,
  systemType,
  scheduledType,
  ...brokerConfigs.map(({ row }) => row.type),
  ...kinds.flatMap(({ types }) => types)
]

const ofNoProvider = Schema.String.check(
  Schema.isPattern(new RegExp(`^(?!(?:${reservedTypes.join("|")})$)[A-Z][A-Z0-9_]{0,63}$`, "u"))
).annotate({
  description:
    "Default: WEBHOOK. Any other name that is not, and does not resemble, the name of a provider; for an unknown vendor auth_type is required"
})

const GenericWrite = Schema.Struct({
  ...whole,
  type: optional(ofNoProvider),
  config: optional(Schema.Union([Open, Basic, ApiKey, Hmac, Schema.Null]))
})
  .check(alsoBeside("config"))
  .annotate({
    identifier: "GenericSourceWrite",
    description: "A source whose settings define how its senders are verified.",
    examples: [example.body]
  })

/** Sources of a provider: the type determines the verification, except for the secrets. */
const providerWrite = ({ Auth, kind: { authType, name, types } }: (typeof written)[number]) => {
  const Config = Schema.Struct({
    ...settings,
    auth_type: optional(
      Schema.Literals([authType, "PROVIDER_SIGNATURE"]).annotate({ description: "Optional: the type implies it" })
    ),
    auth: Auth
  }).annotate({ identifier: `${name}SourceConfig` })
  const others = Object.entries(generic).flatMap(([type, config]) => (type === authType ? [] : [config]))
  return Schema.Struct({
    ...whole,
    type: oneOf(types),
    config: optional(Schema.Union([Config, Open, ...others, Schema.Null]))
  })
    .check(alsoBeside("config"))
    .annotate({ identifier: `${name}SourceWrite`, description: `Sources of the types ${types.join(", ")}.` })
}

const providerWrites = written.map(providerWrite)

const providerExample = {
  provider_key: "websub",
  definition_key: "entry.added_polling",
  inputs: { url: "https://blog.example.com/feed" },
  schedule: { interval_minutes: 15 }
}

/** Sources that receive nothing: their requests are items of a provider. */
const ItemWrite = Schema.Struct({
  ...whole,
  type: Schema.Literal(providerType),
  config: Schema.Struct(itemSettings).annotate({ identifier: "ItemSourceConfig" })
})
  .check(alsoBeside("config"))
  .annotate({
    identifier: "ItemSourceWrite",
    description:
      "A source whose requests are items of a provider: it gets notifications, or reads a list by its schedule.",
    examples: [{ name: "blog", type: providerType, config: { provider: providerExample } }] as never
  })

/** The source of the gateway's own events. */
const SystemWrite = Schema.Struct({ ...whole, type: Schema.Literal(systemType), config: setting(Empty) })
  .check(alsoBeside("config"))
  .annotate({
    identifier: "SystemSourceWrite",
    description:
      "The source whose requests are the gateway's own events. A team has one; it cannot be deleted, but disabled.",
    examples: [{ name: "gateway", type: systemType }] as never
  })

/** Sources whose requests are made by a schedule. */
const ScheduledWrite = Schema.Struct({
  ...whole,
  type: Schema.Literal(scheduledType),
  config: ScheduledConfig
}).annotate({
  identifier: "ScheduledSourceWrite",
  description: "A source that makes one request at each time of its schedule.",
  examples: [{ name: "nightly", type: scheduledType, config: { schedule: scheduleExample } }] as never
})

/** Sources whose requests are messages of a broker. */
const brokerWrites = brokerConfigs.map(({ Config, name, row: { description, example, type } }) =>
  Schema.Struct({ ...whole, type: Schema.Literal(type), config: Config }).annotate({
    identifier: `${name}SourceWrite`,
    description,
    examples: [{ name: "orders", type, config: example }] as never
  })
)

export const SourceWrite = Schema.Union([
  GenericWrite,
  ...providerWrites,
  ItemWrite,
  ScheduledWrite,
  ...brokerWrites,
  SystemWrite
]).annotate({
  identifier: "SourceWrite",
  description: [
    "The type selects the settings: config.auth of a provider's type has the settings of that provider.",
    "Members of config may also be at the top level. Settings of auth have aliases."
  ].join(" ")
})

const anyAuth = [BasicAuth, ApiKeyAuth, HmacAuth] as const

export const SourcePatch = Schema.Struct({
  name: optional(Name),
  ...members,
  type: optional(Type),
  config: setting(
    Schema.Struct({
      ...settings,
      ...itemSettings,
      schedule: optional(PatchedSchedule),
      subscription: optional(WrittenSubscription),
      auth_type: setting(Schema.Literals(["BASIC_AUTH", "API_KEY", "HMAC", "PROVIDER_SIGNATURE", ...brokerAuthTypes])),
      auth: setting(
        Schema.Union([...anyAuth, ...written.map(({ Auth }) => Auth), ...brokerAuthTypes.map(credentialsOf), Empty])
      )
    }).annotate({ identifier: "SourceConfigPatch" })
  )
})
  .check(alsoBeside("config"))
  .annotate({
    identifier: "SourcePatch",
    description:
      "Members in the body are merged into the source, and so are those of provider, schedule and subscription; auth, custom_response, proxy, the inputs of provider, and body and headers of schedule are replaced as a whole.",
    examples: [example.patch]
  })

const ShownProxy = ProxySettings.annotate({ identifier: "ShownProxySettings" })

const shown = {
  allowed_http_methods: Schema.Array(SourceMethod),
  custom_response: Schema.NullOr(Response),
  mode: Schema.Literals(["webhook", "proxy"]),
  proxy: Schema.NullOr(ShownProxy),
  chat_defer_ephemeral: Schema.Boolean,
  rate_limit: Schema.NullOr(RateLimit),
  rate_limit_period: Schema.NullOr(RatePeriod),
  provider: optional(
    ProviderSettings.annotate({ identifier: "ProviderSettings", description: "Only of sources of type PROVIDER" })
  ),
  schedule: optional(
    ScheduleSettings.annotate({ identifier: "ScheduleSettings", description: "Only of sources of type CRON" })
  ),
  subscription: optional(
    ShownSubscription.annotate({
      description: "Only of sources whose requests are messages of a broker: to what they subscribe"
    })
  )
}

/** The settings of one `auth_type` as a read shows them: of the generic scheme, or of a provider of that group. */
const shownAuth = (authType: Provider["authType"], own: object) =>
  Schema.Struct(
    Object.fromEntries(
      [
        ...Object.keys(own),
        ...kinds.flatMap((kind) => (kind.authType === authType ? kind.settings : [])).map(({ name }) => name)
      ].map((name) => [name, name === "tolerance_seconds" ? optional(tolerance) : shownText])
    )
  )

/** How the gateway signs in at a broker, as a read shows it. */
const shownCredentials = (type: string) =>
  Schema.Struct(
    Object.fromEntries(Object.keys(outboundAuthOf(type)!.settings).map((name) => [name, optional(Schema.String)]))
  )

/**
 * By `auth_type`. Null is listed together with HMAC, because generated clients (openapi-fetch) lose a member that can only be
 * null; its `auth` has none of these settings.
 */
const ShownConfig = Schema.Union([
  Schema.Struct({
    ...shown,
    auth_type: Schema.NullOr(Schema.Literal("HMAC")).annotate({
      description: "Null: senders are not verified, and auth is empty"
    }),
    auth: shownAuth("HMAC", HmacAuth.fields)
  }),
  Schema.Struct({ ...shown, auth_type: Schema.Literal("API_KEY"), auth: shownAuth("API_KEY", ApiKeyAuth.fields) }),
  Schema.Struct({ ...shown, auth_type: Schema.Literal("BASIC_AUTH"), auth: shownAuth("BASIC_AUTH", BasicAuth.fields) }),
  ...brokerAuthTypes.map((type) =>
    Schema.Struct({
      ...shown,
      auth_type: Schema.Literal(type),
      auth: shownCredentials(type)
    })
  )
]).annotate({ identifier: "SourceConfig" })

/** A source as it is returned. */
export const SourceRecord = Schema.Struct({
  ...Source.fields,
  config: Source.fields.config.pipe(describedAs(ShownConfig))
}).annotate({
  identifier: "Source",
  description: "A source; secrets are masked, and status repeats disabled_at.",
  examples: [example.record]
})
