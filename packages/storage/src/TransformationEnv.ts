import { Effect, Schema } from "effect"
import { Env } from "@tidegate/model/Transformation"
import { type SecretAddress, SecretUnreadable, type Secrets } from "./Secrets.ts"

interface Owner {
  readonly team_id: string
  readonly id: string
}

const addressOf = ({ id, team_id }: Owner): SecretAddress => ({ team_id, table: "transformations", column: "env", id })

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Env))

/** What goes into the `env` column: the variables encrypted, null when there are none. */
export const sealEnv = (secrets: Secrets["Service"], owner: Owner, env: Env): Effect.Effect<string | null> =>
  Object.keys(env).length === 0 ? Effect.succeed(null) : secrets.encrypt(addressOf(owner), JSON.stringify(env))

/**
 * The variables in an `env` column. Fails when they cannot be read (their key is gone): code must not run without the
 * variables it was given, because what it would make of a request then is wrong and would be delivered.
 */
export const openEnv = (
  secrets: Secrets["Service"],
  owner: Owner & { readonly env: string | null }
): Effect.Effect<Env, SecretUnreadable> => {
  if (owner.env === null) return Effect.succeed({})
  const malformed = () =>
    new SecretUnreadable({ reason: "malformed", message: `env of ${owner.id} is no set of texts` })
  return Effect.flatMap(secrets.decrypt(addressOf(owner), owner.env), (text) =>
    Effect.mapError(decode(text), malformed)
  )
}

/** The same for a record: what cannot be read shows as no variables and is logged, so that it can be given new ones. */
export const showEnv = (
  secrets: Secrets["Service"],
  owner: Owner & { readonly env: string | null }
): Effect.Effect<Env> =>
  Effect.catch(openEnv(secrets, owner), (error) =>
    Effect.as(Effect.logError("a transformation's variables cannot be read", error), {})
  )
