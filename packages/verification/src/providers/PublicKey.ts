import { createPublicKey, verify } from "node:crypto"
import type { KeyObject } from "node:crypto"
import { base64Bytes } from "./Presented.ts"

const pem = /^-----BEGIN PUBLIC KEY-----([^-]*)-----END PUBLIC KEY-----$/

/**
 * A public key as SubjectPublicKeyInfo: PEM, or the base64 within it. Line breaks may be missing or written as `\n`, as
 * they are after a key went through an environment variable. Null if the text is no public key, for example a private key.
 */
export const publicKeyOf = (text: string): KeyObject | null => {
  const trimmed = text.replaceAll("\\n", "\n").trim()
  const encoded = (pem.exec(trimmed)?.[1] ?? trimmed).replace(/\s+/g, "")
  const key = base64Bytes(encoded)
  if (key === null) return null
  try {
    return createPublicKey({ key, format: "der", type: "spki" })
  } catch {
    return null
  }
}

/** `verify` of node:crypto, but returns false where the original throws, for example where a system forbids SHA-1. */
export const verifies = (
  algorithm: "sha1" | "sha256" | "sha384" | "sha512" | null,
  signed: Uint8Array,
  key: KeyObject,
  signature: Uint8Array,
  dsaEncoding: "der" | "ieee-p1363" = "der"
): boolean => {
  try {
    return verify(algorithm, signed, { key, dsaEncoding }, signature)
  } catch {
    return false
  }
}
