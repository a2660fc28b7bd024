import { Identifier, OneOf, OutboundHeaderName } from "@tidegate/model/AuthSettings"
import { Schema } from "effect"
import { SignJWT } from "jose/jwt/sign"
import { sha256Of } from "../MessageSignature.ts"
import { type KeyKind, keyFaults, readableKey, SigningKeyText } from "../SigningKeys.ts"
import { authType, onceOf } from "./OutboundAuthType.ts"

const algorithms = ["RS256", "PS256", "ES256", "EdDSA", "HS256"] as const

const kinds: Readonly<Record<(typeof algorithms)[number], KeyKind>> = {
  RS256: "rsa",
  PS256: "rsa",
  ES256: "p256",
  EdDSA: "ed25519",
  HS256: "secret"
}

const longestSeconds = 3_600
const usualSeconds = 300
const seconds = `must be a whole number from 1 to ${longestSeconds}`

const claim = (description: string) => Schema.optionalKey(Identifier.annotate({ description }))

/** Claims that have a meaning of their own. */
const registered: ReadonlySet<string> = new Set(["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "__proto__"])

/** Deliveries carry a token that the gateway signs for each of them. */
export const signedJwt = authType({
  type: "SIGNED_JWT",
  description: "A JSON Web Token for each delivery, signed with a key of the destination",
  settings: {
    algorithm: OneOf(algorithms),
    key: SigningKeyText,
    key_id: claim("By what name the receiver knows the key: `kid` of the token's header"),
    issuer: claim("`iss` of the token"),
    subject: claim("`sub` of the token"),
    audience: claim("`aud` of the token"),
    lifetime_seconds: Schema.optionalKey(
      Schema.Number.annotate({
        message: seconds,
        description: `For how many seconds a token is valid, at most an hour; default: ${usualSeconds}`
      }).check(
        Schema.isInt({ message: seconds }).abort(),
        Schema.isBetween({ minimum: 1, maximum: longestSeconds }, { message: seconds })
      )
    ),
    header_name: Schema.optionalKey(
      OutboundHeaderName.annotate({
        description: "The header of the token; default: `authorization`, with `Bearer` before the token"
      })
    ),
    body_hash_claim: Schema.optionalKey(
      Identifier.check(
        Schema.isPattern(/^[\w.:/-]{1,128}$/, { message: "must be at most 128 letters, digits and .:/_-" }),
        Schema.makeFilter((name: string) => !registered.has(name) || "must not be a claim with another meaning", {
          toJsonSchema: () => ({ not: { enum: [...registered] } })
        })
      ).annotate({
        description: "The claim with the SHA-256 of the body in hexadecimal digits; default: the token has none"
      })
    )
  },
  aliases: {},
  reachesTarget: true,
  readable: [
    "algorithm",
    "key_id",
    "issuer",
    "subject",
    "audience",
    "lifetime_seconds",
    "header_name",
    "body_hash_claim"
  ],
  check: ({ algorithm, key }) => keyFaults(key, kinds[algorithm]),
  compile: (auth) => {
    const { algorithm, audience, body_hash_claim, issuer, key_id, lifetime_seconds = usualSeconds, subject } = auth
    const key = readableKey(auth.key, kinds[algorithm])
    const header = { alg: algorithm, typ: "JWT", ...(key_id === undefined ? {} : { kid: key_id }) }
    const name = auth.header_name?.toLowerCase() ?? "authorization"
    const scheme = name === "authorization" ? "Bearer " : ""
    const fixed = {
      ...(issuer === undefined ? {} : { iss: issuer }),
      ...(subject === undefined ? {} : { sub: subject }),
      ...(audience === undefined ? {} : { aud: audience })
    }
    return {
      headers: {},
      signs: false,
      sign: async ({ body }, facts) => {
        const iat = facts.timestampSeconds
        const claims = { ...fixed, iat, exp: iat + lifetime_seconds, jti: onceOf(facts) }
        const hash = body_hash_claim === undefined ? {} : { [body_hash_claim]: (await sha256Of(body)).toString("hex") }
        const token = await new SignJWT({ ...claims, ...hash }).setProtectedHeader(header).sign(key)
        return { headers: [name, scheme + token], secret: token }
      }
    }
  }
})
