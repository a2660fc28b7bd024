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

/** What is sent to sources of all other types. */
export const generalSamples: Omit<Samples, "type" | "documentation"> = {
  posts: "json",
  samples: [
    {
      event: "test",
      body: ({ id, iso }) => ({
        id: id(24),
        type: "test",
        created_at: iso,
        data: { message: "This is a test request." }
      })
    }
  ]
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex")

/** `entropy`: returns this number of bytes that nobody can predict. */
export const momentAt = (milliseconds: number, entropy: (bytes: number) => Uint8Array): Moment => ({
  seconds: Math.floor(milliseconds / 1000),
  iso: new Date(milliseconds).toISOString(),
  id: (length) => Array.from(entropy(length), (byte) => letters[byte % letters.length]!).join(""),
  hex: (length) => hexOf(entropy(length)).slice(0, length),
  uuid: () => {
    const bytes = entropy(16)
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
    return hexOf(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
  }
})

/** A sample as it is sent, without its signature. */
export interface SampleRequest {
  readonly method: string
  /** To be appended to the source's URL. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** The request of a sample, before it is signed. */
export const requestOf = ({ posts }: Pick<Samples, "posts">, { body, headers }: Sample, now: Moment): SampleRequest => {
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
