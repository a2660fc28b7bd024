import type { Effect } from "effect"
import type { Env } from "@tidegate/model/Transformation"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import type { SecretUnreadable, Secrets } from "../secrets/Secrets.ts"

interface Sealed extends Owner {
  readonly env: string | null
}

const column = (secrets: Secrets["Service"]) => sealedColumn(secrets, "transformations", "env")

/** The value of the `env` column: the encrypted variables; null when there are none. */
export const sealEnv = (secrets: Secrets["Service"], owner: Owner, env: Env): Effect.Effect<string | null> =>
  column(secrets).seal(owner, env)

/**
 * Decrypts the variables of an `env` column. Fails when they cannot be decrypted (their key is gone): code must not run without
 * its variables, because its wrong result would be delivered.
 */
export const openEnv = (secrets: Secrets["Service"], owner: Sealed): Effect.Effect<Env, SecretUnreadable> =>
  // Only text values are encrypted.
  column(secrets).open(owner, owner.env) as Effect.Effect<Env, SecretUnreadable>

/** The same for a record: unreadable variables show as none and are logged, so that new ones can be set. */
export const showEnv = (secrets: Secrets["Service"], owner: Sealed): Effect.Effect<Env> =>
  column(secrets).show(owner, owner.env) as Effect.Effect<Env>
