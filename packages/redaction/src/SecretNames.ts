import { credentialHeaders } from "@tidegate/verification/PresentedPlaces"
import { providers } from "@tidegate/verification/Providers"

/** Whether what has this name is kept to itself. */
export type IsSecretName = (name: string) => boolean

/** In any case, with whatever is between its letters and digits left out: `X-Api_Key`, `apiKey` and `ａｐｉkey` are one name. */
const plain = (name: string): string =>
  name
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, "")

/** Anywhere in a name. */
const telling =
  /passw(?:or)?d|passphrase|passcode|secret|private_?key|apikey|accesskey|signingkey|encryptionkey|sharedkey|masterkey|authkey|authorization|credential|cookie|bearer|signature|hmac|jwt|sessionid|connectionstring|clientassertion|mnemonic|seedphrase/

/** At its end. */
const ending = /(?:tokens?|pwd|sig|passwort|kennwort|otp)$/

/** The whole of it. */
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
  // What providers sign and present with.
  ...credentialHeaders.map(plain),
  ...providers.flatMap(({ verification }) =>
    verification.kind === "scheme" ? verification.schemes.map(({ header }) => plain(header)) : []
  )
])

const isTelling = (name: string): boolean => telling.test(name) || ending.test(name) || whole.has(name)

/**
 * The names that are secret, and those of `more`. A name that is a path (`user[password]`, `auth.token.value`) is secret when a step
 * of it is. It says too much rather than too little: a share is read by anybody.
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
