import { Effect, type Schema } from "effect"
import { maskAuth } from "@tidegate/redaction/Masking"
import { type Owner, sealedColumn } from "./SealedColumn.ts"
import type { Secrets, SecretUnreadable } from "./Secrets.ts"

type Settings = Schema.JsonObject

/** What goes into an `auth` column: the settings encrypted, null when there are none. */
export const sealAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner,
  auth: Settings
): Effect.Effect<string | null> => sealedColumn(secrets, table, "auth").seal(owner, auth)

/** The settings in an `auth` column; fails when they cannot be read. What verifies by them has to fail closed then. */
export const readAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings, SecretUnreadable> => sealedColumn(secrets, table, "auth").open(owner, owner.auth)

/** The settings in an `auth` column; none when they cannot be read. What verifies or authenticates by it has to fail closed by itself. */
export const openAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings> => sealedColumn(secrets, table, "auth").show(owner, owner.auth)

/** The settings in an `auth` column as a record shows them: secrets masked. */
export const showAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null; readonly config: { readonly auth_type: string | null } }
): Effect.Effect<Settings> =>
  // What masks an object yields an object.
  Effect.map(openAuth(secrets, table, owner), (auth) => maskAuth(owner.config.auth_type, auth) as Settings)
