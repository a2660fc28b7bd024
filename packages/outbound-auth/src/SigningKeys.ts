import { createPrivateKey, createSecretKey, type KeyObject } from "node:crypto"
import { Secret } from "@tidegate/model/AuthSettings"
import { signingKey } from "@tidegate/model/SigningKey"

/** The keys with which destinations sign their requests. A key that cannot be read is refused when it is written. */

export type KeyKind = "secret" | "rsa" | "p256" | "ed25519"

/** For the message about a key that is refused. */
const needs: Readonly<Record<KeyKind, string>> = {
  secret: "base64 of at least 32 bytes",
  rsa: "an RSA private key of 2048 to 4096 bits, in PEM without a password",
  p256: "a private key of the curve P-256, in PEM without a password",
  ed25519: "an Ed25519 private key, in PEM without a password"
}

const minSecretBytes = 32

/** A key as it is written. Characters and length are those of any secret; its kind decides the rest (`keyFault`). */
export const SigningKeyText = Secret.annotate({
  description:
    "A private key in PEM or, for an algorithm that begins with `hmac` or `HS`, base64 of at least 32 bytes. Encrypted at rest, masked on read; writing the mask back keeps it"
})

const secretOf = (text: string): KeyObject | null => {
  // `signingKey` takes base64 after `whsec_` too, which no other program would read as the same key.
  const key = text.startsWith("whsec_") ? null : signingKey(text.trim(), "base64")
  return key !== null && (key.symmetricKeySize ?? 0) >= minSecretBytes ? createSecretKey(key.export()) : null
}

const isOfKind = ({ asymmetricKeyDetails = {}, asymmetricKeyType }: KeyObject, kind: KeyKind): boolean => {
  if (kind === "ed25519") return asymmetricKeyType === "ed25519"
  if (kind === "p256") return asymmetricKeyType === "ec" && asymmetricKeyDetails.namedCurve === "prime256v1"
  const { hashAlgorithm, modulusLength = 0 } = asymmetricKeyDetails
  // A key for PSS alone may name a hash, and then signs with no other one. Signing with a longer key takes too much processor time.
  const isRsa = asymmetricKeyType === "rsa" || (asymmetricKeyType === "rsa-pss" && hashAlgorithm === undefined)
  return kind === "rsa" && isRsa && modulusLength >= 2048 && modulusLength <= 4096
}

/** Reads a key; null if it is none of this kind. */
export const readKey = (text: string, kind: KeyKind): KeyObject | null => {
  if (kind === "secret") return secretOf(text)
  try {
    // A key that went through an environment variable has its line breaks written out.
    const key = createPrivateKey(text.replaceAll("\\n", "\n"))
    return isOfKind(key, kind) ? key : null
  } catch {
    return null
  }
}

/** The error of a written key; none if it can be read. */
export const keyFaults = (text: string, kind: KeyKind) =>
  readKey(text, kind) === null ? [{ path: "config.auth.key", message: `must be ${needs[kind]}` }] : []

/** A key that was checked when it was written. */
export const readableKey = (text: string, kind: KeyKind): KeyObject => {
  const key = readKey(text, kind)
  if (key === null) throw new Error(`a stored key is not ${needs[kind]}`)
  return key
}
