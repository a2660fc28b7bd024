import { Effect, Schema } from "effect"
import { maskAuth } from "@tidegate/signatures/Masking"
import type { Secrets, SecretUnreadable } from "./Secrets.ts"

interface Owner {
  readonly team_id: string
  readonly id: string
}

type Settings = Schema.JsonObject

const addressOf = (table: string, { id, team_id }: Owner) => ({ team_id, table, column: "auth", id })

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.JsonObject))

/** What goes into an `auth` column: the settings encrypted, null when there are none. */
export const sealAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner,
  auth: Settings
): Effect.Effect<string | null> =>
  Object.keys(auth).length === 0 ? Effect.succeed(null) : secrets.encrypt(addressOf(table, owner), JSON.stringify(auth))

/** The settings in an `auth` column; fails when they cannot be read. What verifies by them has to fail closed then. */
export const readAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings, SecretUnreadable | Schema.SchemaError> =>
  owner.auth === null
    ? Effect.succeed({})
    : Effect.flatMap(secrets.decrypt(addressOf(table, owner), owner.auth), decode)

/**
 * The settings in an `auth` column. One that cannot be read (its key is gone) reads as no settings and is logged: the
 * resource can still be seen and given new ones. What verifies or authenticates by it has to fail closed by itself.
 */
export const openAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings> =>
  Effect.catch(readAuth(secrets, table, owner), (error) =>
    Effect.as(Effect.logError("stored auth settings cannot be read", error), {})
  )

/** The settings in an `auth` column as a record shows them: secrets masked. */
export const showAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null; readonly config: { readonly auth_type: string | null } }
): Effect.Effect<Settings> =>
  // What masks an object yields an object.
  Effect.map(openAuth(secrets, table, owner), (auth) => maskAuth(owner.config.auth_type, auth) as Settings)
