import { createHmac } from "node:crypto"
import type { KeyObject } from "node:crypto"
import { Result } from "effect"
import { signingKey } from "@tidegate/model/SigningKey"

/** A prepared signing secret of a team: one key for each of a delivery's two signatures. */
export interface SigningSecret {
  /** For `x-gateway-signature`: the UTF-8 bytes of the whole secret. */
  readonly gatewayKey: KeyObject
  /** For `webhook-signature`: the Standard Webhooks key of the same secret. */
  readonly webhookKey: KeyObject
  /** The time (ms) at which it stops signing; null if it is the current secret. */
  readonly until: number | null
}

/** The contract's minimum length of a secret that a caller provides. */
const minimumLength = 12

/**
 * Prepares `secret`, or returns an error. Call it when a secret is written, because a `whsec_` secret
 * that is not base64 has no Standard Webhooks key, and no receiver could verify its signatures.
 */
export const prepareSigningSecret = (
  secret: string,
  until: number | null = null
): Result.Result<SigningSecret, string> => {
  if (Array.from(secret).length < minimumLength) return Result.fail(`must be at least ${minimumLength} characters`)
  if (!secret.isWellFormed()) return Result.fail("must be valid Unicode text")
  const gatewayKey = signingKey(secret, "utf8")
  const webhookKey = signingKey(secret, "whsec")
  return gatewayKey === null || webhookKey === null
    ? Result.fail("must be base64 after whsec_")
    : Result.succeed({ gatewayKey, webhookKey, until })
}

/**
 * The same secret in the form of Standard Webhooks libraries, which read base64 after `whsec_`. A secret that already has this form is
 * returned unchanged; the key of any other secret is its UTF-8 bytes.
 */
export const whsecOf = (secret: string): string =>
  secret.startsWith("whsec_") ? secret : `whsec_${Buffer.from(secret, "utf8").toString("base64")}`

export interface Delivery {
  /** The active secrets, newest first; more than one during a rotation. Never empty. */
  readonly secrets: readonly [SigningSecret, ...ReadonlyArray<SigningSecret>]
  /** The id of the root event: retries repeat it, so that a receiver can recognise events that it has processed. */
  readonly webhookId: string
  /** Unix seconds of this attempt. */
  readonly timestampSeconds: number
  /** The bytes that are sent. */
  readonly body: Uint8Array
}

export type SignatureHeaders = Readonly<
  Record<
    "x-gateway-timestamp" | "x-gateway-signature" | "webhook-id" | "webhook-timestamp" | "webhook-signature",
    string
  >
>

const sign = (key: KeyObject, prefix: string, body: Uint8Array, encoding: "hex" | "base64"): string =>
  createHmac("sha256", key).update(prefix, "utf8").update(body).digest(encoding)

/**
 * The signature headers of one attempt: the gateway's own (`v1=<hex>` over `{timestamp}.{body}`) and the Standard
 * Webhooks triplet (`v1,<base64>` over `{id}.{timestamp}.{body}`). During a rotation both carry one signature per
 * secret, in the list form of their header: `v1=a,v1=b` and `v1,a v1,b`.
 */
export const signDelivery = ({ body, secrets, timestampSeconds, webhookId }: Delivery): SignatureHeaders => {
  const timestamp = String(timestampSeconds)
  const [current, ...former] = secrets
  const inForce = [current, ...former.filter(({ until }) => until === null || timestampSeconds * 1000 < until)]
  return {
    "x-gateway-timestamp": timestamp,
    "x-gateway-signature": inForce
      .map(({ gatewayKey }) => `v1=${sign(gatewayKey, `${timestamp}.`, body, "hex")}`)
      .join(","),
    "webhook-id": webhookId,
    "webhook-timestamp": timestamp,
    "webhook-signature": inForce
      .map(({ webhookKey }) => `v1,${sign(webhookKey, `${webhookId}.${timestamp}.`, body, "base64")}`)
      .join(" ")
  }
}
