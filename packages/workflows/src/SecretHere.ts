import { secretNames } from "@tidegate/redaction/SecretNames"

/** As a word of a name they make it secret here, beside what is secret anywhere: `card_pin`, `customerSsn`, `token_of_guest`. */
const secretWords = new Set(["ssn", "iban", "pin", "cvv", "cvc", "token", "tokens", "auth", "session", "pwd", "passwd"])

const wordsOf = (name: string): ReadonlyArray<string> =>
  name
    .slice(0, 128)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/)

/** Whether a name is secret in what goes through a workflow; `more` are secret in it too. */
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

/** One for all values: what steps are given and give has the same names run after run. */
export const isSecretHere = secretIn([])
