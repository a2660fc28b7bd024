import { Identifier, OneOf } from "@tidegate/model/AuthSettings"
import { setByClient } from "@tidegate/model/HeaderRules"
import { Schema } from "effect"
import {
  contentDigest,
  derivedComponents,
  type SignatureAlgorithm,
  signatureBase,
  signBase
} from "../MessageSignature.ts"
import { type KeyKind, keyFaults, readableKey, SigningKeyText } from "../SigningKeys.ts"
import { authType, onceOf } from "./OutboundAuthType.ts"

const kinds: Readonly<Record<SignatureAlgorithm, KeyKind>> = {
  "hmac-sha256": "secret",
  ed25519: "ed25519",
  "rsa-pss-sha512": "rsa",
  "ecdsa-p256-sha256": "p256"
}

const maxComponents = 32
const usual = ["@method", "@target-uri", "content-type", "content-digest"]
/** The HTTP client or the signature itself sets them later. */
const unknownYet: ReadonlySet<string> = new Set([...setByClient, "signature", "signature-input"])

const isComponent = (name: string): boolean =>
  derivedComponents.includes(name) || (/^[a-z\d!#$%&'*+.^_`|~-]{1,256}$/.test(name) && !unknownYet.has(name))

const components = `must be 1 to ${maxComponents} different names: ${derivedComponents.join(", ")} and headers in small letters that HTTP does not set itself`

const Components = Schema.Array(Schema.String.annotate({ message: "must be a string" }))
  .annotate({
    message: "must be a list of names",
    description: `What the signature covers; default: ${usual.join(", ")}. A header that a delivery does not have is not covered`,
    examples: [usual]
  })
  .check(
    Schema.makeFilter(
      (names: ReadonlyArray<string>) =>
        (names.length > 0 &&
          names.length <= maxComponents &&
          names.every(isComponent) &&
          new Set(names).size === names.length) ||
        components,
      { toJsonSchema: () => ({ minItems: 1, maxItems: maxComponents, uniqueItems: true }) }
    )
  )

const longestSeconds = 86_400
const seconds = `must be a whole number from 1 to ${longestSeconds}`

/** Text of a parameter: a string of structured fields (RFC 8941). */
const parameter = (description: string) =>
  Identifier.check(
    Schema.isPattern(/^[\x20-\x7e]{1,256}$/, { message: "must be at most 256 printable ASCII characters" })
  ).annotate({ description })

/** Deliveries carry an HTTP message signature. */
export const httpMessageSignature = authType({
  type: "HTTP_MESSAGE_SIGNATURE",
  description: "Signed as RFC 9421 says, with a key of the destination: content-digest, signature-input, signature",
  settings: {
    key_id: parameter("By what name the receiver knows the key: `keyid` of the signature"),
    algorithm: OneOf(["hmac-sha256", "ed25519", "rsa-pss-sha512", "ecdsa-p256-sha256"]),
    key: SigningKeyText,
    components: Schema.optionalKey(Components),
    expires_seconds: Schema.optionalKey(
      Schema.Number.annotate({
        message: seconds,
        description: "For how many seconds the signature is valid; default: it does not expire"
      }).check(
        Schema.isInt({ message: seconds }).abort(),
        Schema.isBetween({ minimum: 1, maximum: longestSeconds }, { message: seconds })
      )
    ),
    tag: Schema.optionalKey(parameter("The application of the signature, where the receiver asks for one"))
  },
  aliases: {},
  // A signature that covers no address would be valid at the former target, too.
  reachesTarget: true,
  readable: ["key_id", "algorithm", "components", "expires_seconds", "tag"],
  check: ({ algorithm, key }) => keyFaults(key, kinds[algorithm]),
  compile: ({ algorithm, components = usual, expires_seconds, key, key_id, tag }) => {
    const readable = readableKey(key, kinds[algorithm])
    const coversBody = components.includes("content-digest")
    return {
      headers: {},
      signs: false,
      sign: async (request, facts) => {
        const digest = coversBody ? ["content-digest", await contentDigest(request.body)] : []
        const created = facts.timestampSeconds
        const headers = coversBody ? request.headers.filter(isNotDigest).concat(digest) : request.headers
        const { base, input } = signatureBase({ ...request, headers }, components, {
          created,
          ...(expires_seconds === undefined ? {} : { expires: created + expires_seconds }),
          keyid: key_id,
          alg: algorithm,
          nonce: onceOf(facts),
          ...(tag === undefined ? {} : { tag })
        })
        const signature = await signBase(algorithm, readable, base)
        const value = `${label}=:${signature.toString("base64")}:`
        return { headers: [...digest, "signature-input", `${label}=${input}`, "signature", value] }
      }
    }
  }
})

/** The name of the signature among those of a request; there is one. */
const label = "sig1"

/** Whether an entry of a flat list belongs to another header than a digest that the sender wrote. */
const isNotDigest = (_: string, index: number, flat: ReadonlyArray<string>): boolean =>
  flat[index - (index % 2)]!.toLowerCase() !== "content-digest"
