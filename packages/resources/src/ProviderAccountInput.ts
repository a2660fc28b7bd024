import { Schema } from "effect"
import { Identifier, OneOf, Secret } from "@tidegate/model/AuthSettings"
import * as Characters from "@tidegate/model/Characters"
import { urlFault } from "@tidegate/model/UrlFault"
import { Id, nameUpTo, optional, setting, text } from "./Members.ts"
import { bodyOf } from "./Resource.ts"

/** The bodies of the calls that connect provider accounts. */

const longestUrl = 2_048

const Url = text.check(
  Schema.makeFilter((written: string) => urlFault(written, longestUrl) ?? true, {
    toJsonSchema: () => ({
      pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\#]+$`,
      maxLength: longestUrl,
      format: "uri"
    })
  })
)

const BaseUrl = Url.check(
  Schema.makeFilter((written: string) => !written.includes("?") || "must not have a query", {
    toJsonSchema: () => ({})
  })
).annotate({ description: "The API of a service that you host yourself. Default: the provider's own" })

const provider_key = text
  .check(Schema.isPattern(/^[a-z0-9_]{1,32}$/u, { message: "must be a key of the catalog" }))
  .annotate({ description: "A provider with an account: see `GET /source-providers`" })

const account_id = setting(
  Id.annotate({ description: "An account to connect again. It keeps its id, its name and the sources that use it" })
)
const Name = nameUpTo(155)

const scope = String.raw`[\x21\x23-\x5b\x5d-\x7e]{1,300}`
const Scopes = Schema.Array(
  text.check(Schema.isPattern(new RegExp(`^${scope}$`, "u"), { message: "must be a scope without spaces" }))
)
  .check(Schema.isMaxLength(100, { message: "must be at most 100 scopes" }))
  .annotate({
    message: "must be a list of scopes",
    description: "Default: the scopes that the provider's triggers need"
  })

const ConsentWrite = Schema.Struct({
  provider_key,
  name: optional(Name.annotate({ description: "For people. Default: the name of the account at the provider" })),
  scopes: setting(Scopes),
  client_id: Identifier.annotate({ description: "The client that you have registered at the provider" }),
  client_secret: setting(Secret.annotate({ description: "Absent for a public client. Encrypted, and never returned" })),
  token_auth_method: setting(
    OneOf(["client_secret_post", "client_secret_basic"]).annotate({
      description: "How the client's secret is sent: in the body (default), or in a header"
    })
  ),
  redirect_uri: setting(
    Url.annotate({
      description: "A page of your own. Default: the gateway's `/v1/oauth/callback`. Register it at the provider"
    })
  ),
  base_url: setting(BaseUrl),
  account_id
}).annotate({ identifier: "ProviderAccountConsentWrite" })
export type ConsentInput = typeof ConsentWrite.Type

export const consentBody = bodyOf(ConsentWrite)

const ConsentBack = Schema.Struct({
  state: text.check(Characters.between(1, 200)).annotate({ description: "The state of the started consent" }),
  code: setting(
    text.check(Characters.between(1, 4_096)).annotate({ description: "The code that the provider issued" })
  ),
  error: setting(text.check(Characters.between(1, 200)).annotate({ description: "The reason why there is no code" }))
}).annotate({ identifier: "ProviderAccountConsentBack" })
export type ConsentBackInput = typeof ConsentBack.Type

export const consentBackBody = bodyOf(ConsentBack)

const CredentialsWrite = Schema.Struct({
  provider_key,
  name: optional(
    Name.annotate({
      description: "For people. Default: the name of the account at the provider; a reconnected account keeps its name"
    })
  ),
  base_url: setting(BaseUrl),
  credentials: Schema.JsonObject.annotate({
    message: "must be an object",
    description: "The provider's credential fields. They are encrypted, and never returned"
  }).check(Schema.isMaxProperties(50, { message: "must have at most 50 members" })),
  account_id
}).annotate({ identifier: "ProviderAccountCredentialsWrite" })
export type CredentialsInput = typeof CredentialsWrite.Type

export const credentialsBody = bodyOf(CredentialsWrite)
