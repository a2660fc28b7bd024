import { generateKeyPairSync } from "node:crypto"
import { Result, type Schema } from "effect"
import type { Connector, OpenAuth } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import { compileOutboundAuth, outboundAuthTypes, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { ConformanceRow } from "./Row.ts"

/** Stands in the place of every secret. */
export const secret = "s3cret-of-the-destination"

const client = { token_url: "https://id.example.com/token", client_id: "readable", client_secret: secret }
const privateKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
  type: "pkcs8",
  format: "pem"
})

const signingKey = Buffer.from(secret.repeat(2)).toString("base64")

/** Settings of an `auth_type` that are no plain text. */
const particular: Readonly<Record<string, Schema.JsonObject>> = {
  HTTP_MESSAGE_SIGNATURE: { key_id: "readable", algorithm: "hmac-sha256", key: signingKey },
  SIGNED_JWT: { algorithm: "HS256", key: signingKey, issuer: "readable" },
  AWS_SIGV4: {
    access_key_id: "readable",
    secret_access_key: secret,
    session_token: secret,
    region: "readable",
    service: "readable"
  },
  CUSTOM_HEADER: { header_name: "x-key", value: secret },
  OAUTH2_CLIENT_CREDENTIALS: { ...client, scope: "readable" },
  OAUTH_REFRESH_TOKEN: { ...client, refresh_token: secret },
  OAUTH2_AUTHORIZATION_CODE: { ...client, authorization_url: "https://id.example.com/auth", refresh_token: secret },
  NATS_NKEY: { seed: "SUAASCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCKHGM", jwt: `a.${secret}.b` },
  SERVICE_ACCOUNT: { client_email: "readable", private_key: privateKey, token_uri: client.token_url }
}

/** For types that take tokens: where their addresses lead with this `config`, and those that a person goes to and the gateway does not. */
export const tokenAddresses = (config: Config): ConformanceRow["addresses"] => ({
  "auth.token_url": ({ url }) => ({
    config,
    auth_type: "OAUTH2_CLIENT_CREDENTIALS",
    auth: { ...client, token_url: url }
  }),
  "auth.token_uri": ({ url }) => ({
    config,
    auth_type: "SERVICE_ACCOUNT",
    auth: { client_email: "readable", private_key: privateKey, token_uri: url }
  })
})

/** The same for the place where the key of a role is asked for. */
export const roleAddress = (config: Config): ConformanceRow["addresses"] => ({
  "auth.sts_endpoint": ({ url }) => ({
    config,
    auth_type: "AWS_SIGV4",
    auth: {
      access_key_id: "readable",
      secret_access_key: secret,
      region: "readable",
      service: "readable",
      role_arn: "arn:aws:iam::123456789012:role/gateway",
      sts_endpoint: url
    }
  })
})
export const tokenNotReached = {
  "auth.authorization_url": "a person's browser goes there",
  "auth.redirect_uri": "a person's browser is led back there"
}

/** An `auth` of a way to authenticate. */
export const authOf = (authType: string): Schema.JsonObject => {
  const row = outboundAuthTypes.find(({ type }) => type === authType)
  if (row === undefined) throw new Error(`there is no ${authType}`)
  const plain = Object.keys(row.settings).map((name) => [name, row.readable.includes(name) ? "readable" : secret])
  return particular[authType] ?? (Object.fromEntries(plain) as Schema.JsonObject)
}

export const openAuthOf = (authType: string): OpenAuth => {
  const checked = Result.getOrThrow(validateOutboundAuth(authType, authOf(authType)))
  const { grant, headers, signs: _, ...others } = compileOutboundAuth(checked)
  // Where a token is to be obtained, a sender is opened when it is there.
  const opened = grant === undefined ? headers : { ...headers, authorization: `Bearer ${secret}` }
  return { ...others, headers: opened, signing: null, settings: checked.auth }
}

/** An `auth` of each way that a type allows. */
export const authsOf = (row: Connector): ReadonlyArray<OpenAuth> => row.auths.map(openAuthOf)
