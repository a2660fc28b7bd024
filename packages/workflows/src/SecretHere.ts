import { secretNames } from "@tidegate/redaction/SecretNames"

/**
 * A name that contains one of these words is secret in workflows, beside the names that are secret everywhere: `card_pin`,
 * `customerSsn`, `token_of_guest`.
 */
const secretWords = new Set(["ssn", "iban", "pin", "cvv", "cvc", "token", "tokens", "auth", "session", "pwd", "passwd"])

const wordsOf = (name: string): ReadonlyArray<string> =>
  name
    .slice(0, 128)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/)

/** Whether a name is secret in the values of a workflow; `more`: further secret names. */
export const secretIn = (more: ReadonlyArray<string>): ((name: string) => boolean) => {
  const isSecret = secretNames(more)
  const known = new Map<string, boolean>()
  return (name) => {
    const found = known.get(name)
    if (found !== undefined) return found
    const verdict = isSecret(name) || wordsOf(name).some((word) => secretWords.has(word))
    if (name.length <= 64 && known.size < 2_000) known.set(name, verdict)
    return verdict
  }
}

/** One instance for all values: steps have the same names in every run. */
export const isSecretHere = secretIn([])
