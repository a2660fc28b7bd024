import { Effect } from "effect"
import { keysFit } from "@tidegate/storage/Agreement"
import { type DatabaseCheck, fine, Installation, wrong } from "../Check.ts"

/** Whether the key ring reads the secrets in the database. */
export const keys: DatabaseCheck = {
  of: "database",
  name: "keys",
  about: "whether the secret keys are those of the database",
  look: Effect.gen(function* () {
    if (!(yield* keysFit)) {
      return wrong(
        "the secrets in this database were encrypted with another key",
        "give TIDEGATE_SECRET_KEYS, or the file secrets.key, of the installation that the database belongs to; without it all secrets have to be entered again"
      )
    }
    const { keys } = yield* Installation
    return fine(
      keys.length === 1
        ? "the key reads the database's secrets"
        : `the ${keys.length} keys read the database's secrets; admin keys rotate --check says which are still needed`
    )
  })
}
