import { createPublicKey } from "node:crypto"
import { discordEventsHandshake, discordInteractionsHandshake } from "../Handshakes.ts"
import type { ProviderType } from "../introductions/Introductions.ts"
import type { Age, Answer, Check, HandshakeOf, Provider } from "../Provider.ts"
import { isOfAge, singleHeader, unixSeconds } from "./Presented.ts"
import { verifies } from "./PublicKey.ts"
import { answer, usualAge } from "./settings.ts"

/** The y coordinates of the points of small order: with such a public key, signatures can be forged without a private key. */
const smallOrder: ReadonlySet<string> = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
])

const withoutSign = (bytes: Buffer): string => {
  const y = Buffer.from(bytes)
  y[31] = y[31]! & 0x7f
  return y.toString("hex")
}

const keyOf = (text: string) => {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : null
  if (bytes === null || smallOrder.has(withoutSign(bytes))) return null
  try {
    return createPublicKey({
      key: { kty: "OKP", crv: "Ed25519", x: bytes.toString("base64url") },
      format: "jwk"
    })
  } catch {
    return null
  }
}

const compile = (publicKey: string, age: Age): Check | null => {
  const key = keyOf(publicKey)
  if (key === null) return null
  return ({ body, headers, nowSeconds }) => {
    const signature = singleHeader(headers, "x-signature-ed25519")
    const timestamp = singleHeader(headers, "x-signature-timestamp")
    if (signature === null || timestamp === null || !/^[0-9a-f]{128}$/i.test(signature)) return false
    const seconds = unixSeconds(timestamp)
    if (seconds === null || !isOfAge(age, seconds, nowSeconds)) return false
    return verifies(null, Buffer.concat([Buffer.from(timestamp, "latin1"), body]), key, Buffer.from(signature, "hex"))
  }
}

const discord = (type: ProviderType, age: Age, received: Answer, handshake: HandshakeOf): Provider => ({
  types: [type],
  authType: "HMAC",
  settings: [
    {
      name: "public_key",
      required: true,
      secret: false,
      problem: (value) => (keyOf(value) === null ? "must be the application's public key in 64 hex digits" : null)
    }
  ],
  answer: received,
  verification: { kind: "code", age: age, compile: ({ public_key = "" }) => compile(public_key, age) },
  handshake
})

/** https://docs.discord.com/developers/interactions/overview: Ed25519 over `{timestamp}{body}`. */
export const discordInteractions = discord(
  "DISCORD",
  usualAge,
  answer("200", 3, "interaction"),
  discordInteractionsHandshake
)

/**
 * https://docs.discord.com/developers/events/webhook-events: signed in the same way. Discord retries for ten minutes and does not
 * document that it signs anew, so the tolerance covers a retry: a replay of the same bytes does less harm than a lost event.
 */
export const discordEvents = discord(
  "DISCORD_EVENTS",
  { past: 900, ahead: 300 },
  answer("204", 3, "empty"),
  discordEventsHandshake
)
