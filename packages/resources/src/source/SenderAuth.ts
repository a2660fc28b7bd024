import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import type { Provider, ProviderSetting } from "@tidegate/verification/Provider"
import { providers } from "@tidegate/verification/Providers"
import { algorithms, encodings } from "@tidegate/verification/SignatureScheme"
import { otherNames } from "../DescribedAs.ts"
import { HeaderName, secretText, setting } from "../Members.ts"

/** How senders are verified, for the document: the settings of the generic schemes, and those of each group of providers. */

export const tolerance = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })).annotate({
  description:
    "The largest age of a timestamp in seconds; it may be as far in the future, but at most 300 (default with a timestamp_header: 300)"
})

export const BasicAuth = Schema.Struct({
  username: Schema.String.check(Schema.isPattern(/^[^:]{1,1024}$/u)),
  password: secretText("What the sender presents")
})
  .check(otherNames)
  .annotate({ identifier: "BasicAuth" })

export const ApiKeyAuth = Schema.Struct({
  api_key: secretText("What the sender presents"),
  header_key: setting(
    HeaderName.annotate({ description: "The header that contains it (default without a query_key: x-api-key)" })
  ),
  query_key: setting(Schema.String.check(Characters.between(1, 1024)))
})
  .check(otherNames)
  .annotate({ identifier: "ApiKeyAuth" })

export const HmacAuth = Schema.Struct({
  webhook_secret_key: secretText("The secret shared with the sender"),
  header_key: setting(
    HeaderName.annotate({ description: "The header that contains the signature", default: "x-signature" })
  ),
  algorithm: setting(Schema.Literals(algorithms).annotate({ default: "sha256" })),
  encoding: setting(Schema.Literals(encodings).annotate({ default: "hex" })),
  prefix: setting(
    Schema.String.check(Schema.isPattern(/^(?:[\x21-\x7e][\x20-\x7e]{0,63})?$/u)).annotate({
      description: "The text before the signature",
      examples: ["sha256="]
    })
  ),
  timestamp_header: setting(
    HeaderName.annotate({
      description: "The header that contains the timestamp; with it, `{timestamp}.{body}` is signed"
    })
  ),
  tolerance_seconds: setting(tolerance)
})
  .check(otherNames)
  .annotate({ identifier: "HmacAuth" })

/** A group of providers whose settings have the same form. */
interface Kind {
  readonly name: string
  readonly authType: Provider["authType"]
  readonly settings: ReadonlyArray<ProviderSetting>
  readonly types: ReadonlyArray<string>
}

const pascal = (text: string): string => text.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** `ProviderWebhookSecretKey`, `ProviderApiKeyOptionalHeaderKey`: named after their settings. */
const kindName = ({ settings }: Provider): string =>
  `Provider${settings.map(({ name, required }) => `${required ? "" : "Optional"}${pascal(name)}`).join("")}`

/** The rows of the provider table, grouped by the form of their settings. */
export const kinds: ReadonlyArray<Kind> = Array.from(
  Map.groupBy(providers, (provider) => `${provider.authType} ${kindName(provider)}`).values(),
  (alike): Kind => ({
    name: kindName(alike[0]!),
    authType: alike[0]!.authType,
    settings: alike[0]!.settings,
    types: alike.flatMap(({ types }) => types)
  })
)

const providerSetting = ({ default: byDefault, name, required, secret }: ProviderSetting) => {
  const text = Schema.String.check(Characters.between(1, 4096)).annotate({
    ...(secret ? { description: "Encrypted at rest, masked on read" } : {}),
    ...(byDefault === undefined ? {} : { default: byDefault })
  })
  return [name, required ? text : setting(text)] as const
}

const authOf = ({ name, settings }: Kind) =>
  Schema.Struct(Object.fromEntries(settings.map(providerSetting)))
    .check(otherNames)
    .annotate({ identifier: `${name}Auth` })

/** Each group with the schema of its `auth`. */
export const written = kinds.map((kind) => ({ kind, Auth: authOf(kind) }))
