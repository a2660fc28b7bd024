import { randomBytes, randomUUID } from "node:crypto"
import type { Sent } from "../Posting.ts"
import { clerk } from "./clerk.ts"
import { github } from "./github.ts"
import { gitlab } from "./gitlab.ts"
import { resend } from "./resend.ts"
import type { Moment, Sample, Samples } from "./Sample.ts"
import { shopify } from "./shopify.ts"
import { slack } from "./slack.ts"
import { stripe } from "./stripe.ts"
import { twilio } from "./twilio.ts"

/** The samples of all providers. A new provider is a file, and a line here. */
export const catalog: ReadonlyArray<Samples> = [stripe, github, gitlab, shopify, slack, twilio, clerk, resend]

export const samplesOf = (type: string): Samples | undefined => catalog.find((one) => one.type === type)

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const momentAt = (milliseconds: number): Moment => ({
  seconds: Math.floor(milliseconds / 1000),
  iso: new Date(milliseconds).toISOString(),
  id: (length) => Array.from(randomBytes(length), (byte) => letters[byte % letters.length]!).join(""),
  hex: (length) => randomBytes(length).toString("hex").slice(0, length),
  uuid: () => randomUUID()
})

/** The request of a sample, before it is signed. */
export const requestOf = ({ posts }: Samples, { body, headers }: Sample, milliseconds: number): Sent => {
  const now = momentAt(milliseconds)
  const written = body(now)
  const isForm = posts === "form"
  const text = isForm ? new URLSearchParams(written as Record<string, string>).toString() : JSON.stringify(written)
  return {
    method: "POST",
    path: "",
    headers: {
      "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json",
      ...headers?.(now)
    },
    body: Buffer.from(text, "utf8")
  }
}
