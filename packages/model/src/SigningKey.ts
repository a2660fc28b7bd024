import { createSecretKey } from "node:crypto"
import type { KeyObject } from "node:crypto"

/**
 * How the text of a secret is converted to the bytes of an HMAC key. `utf8`: its UTF-8 bytes. `whsec`: the Standard Webhooks
 * form, the base64 after `whsec_`; without that prefix, the UTF-8 bytes. `base64`: the base64, with or without `whsec_` before
 * it.
 */
export type SecretForm = "utf8" | "whsec" | "base64"

const whsecPrefix = "whsec_"

/** The base64 alphabet with full padding or none; a length of 4n + 1 encodes no bytes. */
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/**
 * The key of `secret`, or null when it has none: an empty secret, or one that has to be base64 and is not. It returns null
 * instead of another interpretation, because a receiver that decodes the same secret would refuse it.
 */
export const signingKey = (secret: string, form: SecretForm): KeyObject | null => {
  const isPrefixed = secret.startsWith(whsecPrefix)
  if (form === "utf8" || (form === "whsec" && !isPrefixed)) {
    return secret === "" ? null : createSecretKey(secret, "utf8")
  }
  const encoded = isPrefixed ? secret.slice(whsecPrefix.length) : secret
  return encoded === "" || !base64.test(encoded) ? null : createSecretKey(encoded, "base64")
}
