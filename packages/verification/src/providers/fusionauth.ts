import { createHmac, hash, timingSafeEqual } from "node:crypto"
import type { KeyObject } from "node:crypto"
import type { Provider } from "../Provider.ts"
import { signingKey } from "@tidegate/model/SigningKey"
import { base64Bytes, isOfAge, jsonBody, sameText, singleHeader } from "./Presented.ts"
import type { JsonObject } from "./Presented.ts"
import { publicKeyOf, verifies } from "./PublicKey.ts"
import { anyAnswer, usualAge, webhookSecret } from "./settings.ts"

type Digest = "sha256" | "sha384" | "sha512"
type SignatureCheck = (signed: Buffer, signature: Buffer) => boolean

const digests: ReadonlyArray<readonly [suffix: string, digest: Digest]> = [
  ["256", "sha256"],
  ["384", "sha384"],
  ["512", "sha512"]
]

const curves: Readonly<Record<string, readonly [algorithm: string, digest: Digest]>> = {
  prime256v1: ["ES256", "sha256"],
  secp384r1: ["ES384", "sha384"],
  secp521r1: ["ES512", "sha512"]
}

/**
 * The checks by JWT algorithm. The configured key alone decides which algorithms are accepted, never the token. So a token cannot
 * select `none`, or an HMAC whose secret is the public key.
 */
type Algorithms = ReadonlyMap<unknown, SignatureCheck>

const hmacAlgorithms = (key: KeyObject): Algorithms =>
  new Map(
    digests.map(([suffix, digest]) => [
      `HS${suffix}`,
      (signed, signature) => {
        const expected = createHmac(digest, key).update(signed).digest()
        return expected.length === signature.length && timingSafeEqual(expected, signature)
      }
    ])
  )

const publicAlgorithms = (key: KeyObject): Algorithms | null => {
  if (key.asymmetricKeyType === "rsa") {
    return new Map(
      digests.map(([suffix, digest]) => [
        `RS${suffix}`,
        (signed, signature) => verifies(digest, signed, key, signature)
      ])
    )
  }
  const curve = key.asymmetricKeyType === "ec" ? curves[key.asymmetricKeyDetails?.namedCurve ?? ""] : undefined
  if (curve === undefined) return null
  const [algorithm, digest] = curve
  return new Map([[algorithm, (signed, signature) => verifies(digest, signed, key, signature, "ieee-p1363")]])
}

const publicAlgorithmsOf = (text: string): Algorithms | null => {
  const key = publicKeyOf(text)
  return key === null ? null : publicAlgorithms(key)
}

const algorithmsOf = (secret: string | undefined, publicKey: string | undefined): Algorithms | null => {
  // Two keys are refused: it is unknown which one counts.
  if (secret !== undefined && publicKey !== undefined) return null
  if (publicKey !== undefined) return publicAlgorithmsOf(publicKey)
  // A public key used as the HMAC secret would be a secret that everybody knows.
  const key = secret === undefined || publicKeyOf(secret) !== null ? null : signingKey(secret, "utf8")
  return key === null ? null : hmacAlgorithms(key)
}

const objectOf = (part: string): JsonObject | null => {
  const bytes = base64Bytes(part, "base64url")
  return bytes === null ? null : jsonBody(bytes)
}

/** Time claims are optional: FusionAuth signs the digest of the body and little else. */
const isTimely = (claims: JsonObject, nowSeconds: number): boolean => {
  const holds = (name: string, test: (seconds: number) => boolean) => {
    const value = claims[name]
    return value === undefined || (typeof value === "number" && test(value))
  }
  return (
    holds("exp", (seconds) => nowSeconds <= seconds + usualAge.past) &&
    holds("nbf", (seconds) => seconds - usualAge.ahead <= nowSeconds) &&
    holds("iat", (seconds) => isOfAge(usualAge, seconds, nowSeconds))
  )
}

/**
 * https://fusionauth.io/docs/extend/events-and-webhooks/signing: a JWT whose claim `request_body_sha256` is the base64
 * SHA-256 of the body. Signed by the key of the settings: a secret (HS), an RSA key (RS) or an EC key (ES).
 */
export const fusionauth: Provider = {
  types: ["FUSIONAUTH"],
  authType: "HMAC",
  settings: [
    {
      ...webhookSecret("utf8"),
      required: false,
      problem: (value) => (publicKeyOf(value) === null ? null : "is a public key: give it as public_key")
    },
    {
      name: "public_key",
      required: false,
      secret: false,
      problem: (value) =>
        publicAlgorithmsOf(value) === null ? "must be an RSA or EC public key, in base64 or PEM" : null
    }
  ],
  answer: anyAnswer,
  verification: {
    kind: "code",
    age: usualAge,
    compile: ({ public_key, webhook_secret_key }) => {
      const algorithms = algorithmsOf(webhook_secret_key, public_key)
      if (algorithms === null) return null
      return ({ body, headers, nowSeconds }) => {
        const token = singleHeader(headers, "x-fusionauth-signature-jwt")
        const parts = token === null ? [] : token.split(".", 4)
        const [protectedPart = "", claimsPart = "", signaturePart = ""] = parts
        if (parts.length !== 3) return false
        const header = objectOf(protectedPart)
        const check = header === null ? undefined : algorithms.get(header["alg"])
        // `crit` lists extensions that the verifier must understand, and this one understands none.
        if (header === null || check === undefined || header["crit"] !== undefined) return false
        const signature = base64Bytes(signaturePart, "base64url")
        if (signature === null || !check(Buffer.from(`${protectedPart}.${claimsPart}`, "latin1"), signature)) {
          return false
        }
        const claims = objectOf(claimsPart)
        const digest = claims?.["request_body_sha256"]
        if (claims === null || typeof digest !== "string" || !isTimely(claims, nowSeconds)) return false
        return sameText(digest, hash("sha256", body, "base64"))
      }
    }
  }
}
