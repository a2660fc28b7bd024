import { sameText } from "@tidegate/verification/providers/Presented"
import { createHmac, timingSafeEqual } from "node:crypto"
import type { CallbackReply, Notification } from "../Adapter.ts"

/** Answers to callbacks, and the checks that all adapters use. */

export const reply = (status: number): CallbackReply => ({ status, contentType: null, body: "" })

/** A challenge goes back as plain text, and only if it could not become a web page. */
export const isReflected = (challenge: string | null): challenge is string =>
  challenge !== null && /^[ -;=?-~]{1,1024}$/.test(challenge)

export const reflecting = (challenge: string): CallbackReply => ({
  status: 200,
  contentType: "text/plain; charset=utf-8",
  body: challenge
})

export const rejected = (status: number, reason: string): Notification => ({
  kind: "rejected",
  reason,
  reply: reply(status)
})

export const refusedHandshake = (status: number, reason: string): Notification => ({
  kind: "handshake",
  accepted: false,
  reason,
  reply: reply(status)
})

/** Compares a token that the provider sends back, in constant time. */
export const isToken = (presented: unknown, expected: string): boolean =>
  typeof presented === "string" && sameText(presented, expected)

/** The largest request that is hashed in one step has 10 MiB, which takes about 10 ms. */
export const isHmac = (
  presented: string,
  algorithm: "sha1" | "sha256" | "sha384" | "sha512",
  secret: string,
  ...content: ReadonlyArray<string | Uint8Array>
): boolean => {
  const hmac = createHmac(algorithm, secret)
  for (const part of content) hmac.update(part)
  const expected = hmac.digest()
  const given = Buffer.from(presented, "hex")
  return (
    presented.length === expected.length * 2 && given.length === expected.length && timingSafeEqual(given, expected)
  )
}

/** A text of the provider in a message: short, and without control characters. */
export const shown = (text: string | null, otherwise: string): string =>
  text === null ? otherwise : text.replaceAll(/[^ -~]/g, " ").slice(0, 200)
