import { credentialHeaders } from "@tidegate/verification/PresentedPlaces"
import { providers } from "@tidegate/verification/Providers"

/** Whether values with this name are secret. */
export type IsSecretName = (name: string) => boolean

/** Ignores case, width and all characters but letters and digits: `X-Api_Key`, `apiKey` and `ａｐｉkey` are one name. */
const plain = (name: string): string =>
  name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "")

/** Parts that make a name secret, anywhere in it. */
const telling =
  /passw(?:or)?d|passphrase|passcode|secret|private_?key|apikey|accesskey|signingkey|encryptionkey|sharedkey|masterkey|authkey|authorization|credential|cookie|bearer|signature|hmac|jwt|sessionid|connectionstring|clientassertion|mnemonic|seedphrase/

/** Endings that make a name secret. */
const ending = /(?:tokens?|pwd|sig|passwort|kennwort|otp)$/

/** Whole names that are secret. */
const whole = new Set([
  "auth",
  "pass",
  "pw",
  "pin",
  "sid",
  "dsn",
  "session",
  "cvv",
  "cvc",
  "cvv2",
  "cardnumber",
  "csrf",
  "xsrf",
  "keyid",
  // Headers in which providers sign and present credentials.
  ...credentialHeaders.map(plain),
  ...providers.flatMap(({ verification }) =>
    verification.kind === "scheme" ? verification.schemes.map(({ header }) => plain(header)) : []
  )
])

const isTelling = (name: string): boolean => telling.test(name) || ending.test(name) || whole.has(name)

/**
 * Decides about secret names: the usual ones and those in `more`. A name that is a path (`user[password]`, `auth.token.value`) is secret if
 * one of its segments is. Rather too many names than too few, because anybody may read a share.
 */
export const secretNames = (more: ReadonlyArray<string>): IsSecretName => {
  const added = new Set(more.map(plain).filter((name) => name !== ""))
  const known = new Map<string, boolean>()
  const judge = (name: string): boolean =>
    [name, ...name.split(/[.:/[\]]+/)].map(plain).some((part) => part !== "" && (isTelling(part) || added.has(part)))
  return (name) => {
    const found = known.get(name)
    if (found !== undefined) return found
    const verdict = judge(name)
    if (name.length <= 64 && known.size < 2_000) known.set(name, verdict)
    return verdict
  }
}
