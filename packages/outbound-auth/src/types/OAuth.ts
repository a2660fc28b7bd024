import { createPrivateKey } from "node:crypto"
import { Result, Schema } from "effect"
import type { FieldError } from "@tidegate/model/GatewayError"
import { parseJson } from "@tidegate/json/JsonText"
import { urlFault } from "@tidegate/model/UrlFault"
import { Identifier, OneOf, Secret, TextSecret } from "@tidegate/model/AuthSettings"
import type { Client } from "./Grant.ts"
import { authType } from "./OutboundAuthType.ts"

/** Deliveries have a bearer token that the gateway obtains from a provider, and renews before it expires. */

const kept = "Encrypted at rest, masked on read; writing the mask back keeps it"

/** The address of who gives out tokens. */
export const providerUrl = (description: string) =>
  Schema.String.annotate({ message: "must be a string", description }).check(
    Schema.makeFilter((text: string) => urlFault(text, 2048) ?? true, {
      toJsonSchema: () => ({
        pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s\\#]+$`,
        maxLength: 2048,
        format: "uri"
      })
    })
  )

const optional = Schema.optionalKey
const SecretText = TextSecret.annotate({ description: kept })

const scope = optional(Identifier.annotate({ description: "What the tokens are for: scopes separated by spaces" }))
const audience = optional(
  Identifier.annotate({ description: "Whom the tokens are for, where the provider asks for it" })
)

const methods = ["client_secret_basic", "client_secret_post", "basic", "x-www-form-urlencoded"] as const

/** How the gateway authenticates at the provider. */
const client = {
  token_url: providerUrl("Where tokens are asked for"),
  client_id: Identifier,
  client_secret: SecretText,
  token_auth_method: optional(
    OneOf(methods).annotate({
      description:
        "How the client's secret is sent: `client_secret_basic` (default) in a header, `client_secret_post` in the body. `basic` and `x-www-form-urlencoded` are other names for them"
    })
  )
}
const aliases = { auth_server: "token_url", authentication_type: "token_auth_method" }
const readable = ["token_url", "client_id", "token_auth_method", "scope", "audience"]

interface WrittenClient {
  readonly client_id: string
  readonly client_secret: string
  readonly token_auth_method?: (typeof methods)[number]
}

const clientOf = ({ client_id, client_secret, token_auth_method }: WrittenClient): Client => ({
  id: client_id,
  secret: client_secret,
  method:
    token_auth_method === "client_secret_post" || token_auth_method === "x-www-form-urlencoded"
      ? "client_secret_post"
      : "client_secret_basic"
})

export const clientCredentials = authType({
  type: "OAUTH2_CLIENT_CREDENTIALS",
  description: "A token that the provider gives to the gateway as its client",
  settings: { ...client, scope, audience },
  aliases,
  sentTo: "token_url",
  reachesTarget: true,
  readable,
  compile: (auth) => ({
    headers: {},
    signs: false,
    grant: {
      tokenUrl: auth.token_url,
      scope: auth.scope ?? null,
      how: { kind: "client_credentials", client: clientOf(auth), audience: auth.audience ?? null }
    }
  })
})

export const refreshToken = authType({
  type: "OAUTH_REFRESH_TOKEN",
  description: "A token for a refresh token that somebody has given the gateway",
  settings: { ...client, refresh_token: SecretText, scope },
  aliases,
  sentTo: "token_url",
  reachesTarget: true,
  readable,
  compile: (auth) => ({
    headers: {},
    signs: false,
    grant: {
      tokenUrl: auth.token_url,
      scope: auth.scope ?? null,
      how: { kind: "refresh_token", client: clientOf(auth), refreshToken: auth.refresh_token }
    }
  })
})

export const authorizationCode = authType({
  type: "OAUTH2_AUTHORIZATION_CODE",
  description: "A token that somebody has consented to: at the gateway's request, or elsewhere",
  settings: {
    ...client,
    authorization_url: optional(
      providerUrl("Where somebody consents, with what the provider wants to be asked beside in its query")
    ),
    redirect_uri: optional(
      providerUrl("The URL to which the browser is redirected. Default: the gateway's own `/v1/oauth/callback`")
    ),
    code: optional(SecretText),
    code_verifier: optional(SecretText),
    refresh_token: optional(SecretText),
    scope,
    audience
  },
  aliases,
  sentTo: "token_url",
  reachesTarget: true,
  readable: [...readable, "authorization_url", "redirect_uri"],
  check: ({ authorization_url, code, redirect_uri, refresh_token }): ReadonlyArray<FieldError> => {
    if (code !== undefined && redirect_uri === undefined) {
      return [{ path: "config.auth.redirect_uri", message: "is required with a code: it was given out for one" }]
    }
    return authorization_url === undefined && code === undefined && refresh_token === undefined
      ? [{ path: "config.auth", message: "needs an authorization_url, a code or a refresh_token" }]
      : []
  },
  compile: (auth) => ({
    headers: {},
    signs: false,
    grant: {
      tokenUrl: auth.token_url,
      scope: auth.scope ?? null,
      how: {
        kind: "authorization_code",
        client: clientOf(auth),
        audience: auth.audience ?? null,
        authorizationUrl: auth.authorization_url ?? null,
        redirectUri: auth.redirect_uri ?? null,
        code: auth.code === undefined ? null : { code: auth.code, verifier: auth.code_verifier ?? null },
        refreshToken: auth.refresh_token ?? null
      }
    }
  })
})

/** Default token endpoint of service accounts. */
const usualTokenUri = "https://oauth2.googleapis.com/token"

const PrivateKey = Secret.check(
  Schema.makeFilter((pem: string) => isRsaKey(pem) || "must be an RSA private key of 2048 to 8192 bits, in PEM")
).annotate({ description: `An RSA key in PEM. ${kept}` })

const isRsaKey = (pem: string): boolean => {
  try {
    const { asymmetricKeyDetails, asymmetricKeyType } = createPrivateKey(pem)
    const bits = asymmetricKeyDetails?.modulusLength ?? 0
    // Signing with a longer key takes seconds of processor time.
    return asymmetricKeyType === "rsa" && bits >= 2048 && bits <= 8192
  } catch {
    return false
  }
}

const ofKeyFile = ["client_email", "private_key", "private_key_id", "token_uri"] as const
const keyFile = "service_account_key"

/** Accepts a key file in the form in which the provider's console exports it, and takes the settings from it. */
const expandKeyFile = (auth: Schema.JsonObject): Result.Result<Schema.JsonObject, ReadonlyArray<FieldError>> => {
  const { [keyFile]: written, ...rest } = auth
  if (written === undefined || written === null) return Result.succeed(unescaped(rest))
  const parsed = typeof written === "string" && written.length <= 32_768 ? parseJson(written) : null
  const file = (parsed === null ? written : parsed.kind === "json" ? parsed.value : null) as Schema.JsonObject | null
  if (typeof file !== "object" || file === null || typeof file["private_key"] !== "string") {
    return Result.fail([{ path: `config.auth.${keyFile}`, message: "must be the JSON of a service account's key" }])
  }
  const both = ofKeyFile.filter((name) => (rest[name] ?? null) !== null)
  return both.length > 0
    ? Result.fail([{ path: `config.auth.${both[0]}`, message: `is in ${keyFile} already` }])
    : Result.succeed({ ...rest, ...Object.fromEntries(ofKeyFile.map((name) => [name, file[name] ?? null])) })
}

/** Restores the line breaks of a key that went through an environment variable. */
const unescaped = (auth: Schema.JsonObject): Schema.JsonObject => {
  const key = auth["private_key"]
  return typeof key === "string" ? Object.assign({}, auth, { private_key: key.replaceAll("\\n", "\n") }) : auth
}

export const serviceAccount = authType({
  type: "SERVICE_ACCOUNT",
  description:
    "A token for what a service account signs. Its key file may be written as it is, as a JSON text in `service_account_key`",
  settings: {
    client_email: Identifier,
    private_key: PrivateKey,
    private_key_id: optional(Identifier),
    token_uri: optional(providerUrl(`Where tokens are asked for; left out: ${usualTokenUri}`)),
    scope,
    subject: optional(Identifier.annotate({ description: "The user that it acts for, where it may act for others" }))
  },
  aliases: { token_url: "token_uri" },
  sentTo: "token_uri",
  reachesTarget: true,
  expand: expandKeyFile,
  readable: ["client_email", "private_key_id", "token_uri", "scope", "subject"],
  compile: (auth) => ({
    headers: {},
    signs: false,
    grant: {
      tokenUrl: auth.token_uri ?? usualTokenUri,
      scope: auth.scope ?? null,
      how: {
        kind: "assertion",
        email: auth.client_email,
        privateKey: auth.private_key,
        keyId: auth.private_key_id ?? null,
        subject: auth.subject ?? null
      }
    }
  })
})

/** All kinds of authentication with an obtained bearer token. */
export const tokenAuthTypes = [clientCredentials, authorizationCode, refreshToken, serviceAccount]

/** Their names, for connectors whose targets accept such tokens. */
export const tokenAuths: ReadonlyArray<string> = tokenAuthTypes.map(({ type }) => type)
