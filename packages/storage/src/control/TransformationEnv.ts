import type { Effect } from "effect"
import type { Env } from "@tidegate/model/Transformation"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import type { SecretUnreadable, Secrets } from "../secrets/Secrets.ts"

interface Sealed extends Owner {
  readonly env: string | null
}

const column = (secrets: Secrets["Service"]) => sealedColumn(secrets, "transformations", "env")

/** What goes into the `env` column: the variables encrypted, null when there are none. */
export const sealEnv = (secrets: Secrets["Service"], owner: Owner, env: Env): Effect.Effect<string | null> =>
  column(secrets).seal(owner, env)

/**
 * The variables in an `env` column. Fails when they cannot be read (their key is gone): code must not run without the
 * variables it was given, because what it would make of a request then is wrong and would be delivered.
 */
export const openEnv = (secrets: Secrets["Service"], owner: Sealed): Effect.Effect<Env, SecretUnreadable> =>
  // Only texts are sealed.
  column(secrets).open(owner, owner.env) as Effect.Effect<Env, SecretUnreadable>

/** The same for a record: what cannot be read shows as no variables and is logged, so that it can be given new ones. */
export const showEnv = (secrets: Secrets["Service"], owner: Sealed): Effect.Effect<Env> =>
  column(secrets).show(owner, owner.env) as Effect.Effect<Env>
