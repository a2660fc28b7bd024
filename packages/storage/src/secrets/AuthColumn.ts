import { Effect, type Schema } from "effect"
import { maskAuth } from "@tidegate/redaction/Masking"
import { type Owner, sealedColumn } from "./SealedColumn.ts"
import type { Secrets, SecretUnreadable } from "./Secrets.ts"

type Settings = Schema.JsonObject

/** The value of an `auth` column: the encrypted settings; null when there are none. */
export const sealAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner,
  auth: Settings
): Effect.Effect<string | null> => sealedColumn(secrets, table, "auth").seal(owner, auth)

/** Decrypts the settings of an `auth` column. Fails when they cannot be read: verification has to fail closed then. */
export const readAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings, SecretUnreadable> => sealedColumn(secrets, table, "auth").open(owner, owner.auth)

/**
 * Decrypts the settings of an `auth` column; empty when they cannot be read. Callers that verify or authenticate have to fail
 * closed themselves.
 */
export const openAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null }
): Effect.Effect<Settings> => sealedColumn(secrets, table, "auth").show(owner, owner.auth)

/** The settings of an `auth` column as a record shows them: secrets masked. */
export const showAuth = (
  secrets: Secrets["Service"],
  table: string,
  owner: Owner & { readonly auth: string | null; readonly config: { readonly auth_type: string | null } }
): Effect.Effect<Settings> =>
  // Masking an object returns an object.
  Effect.map(openAuth(secrets, table, owner), (auth) => maskAuth(owner.config.auth_type, auth) as Settings)
