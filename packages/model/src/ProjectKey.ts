import { crc32 } from "node:zlib"
import { Schema } from "effect"
import { type Scope, scopes } from "./Permission.ts"
import { Timestamp } from "./Timestamp.ts"

/** The keys of a team that hold only what they were given, each revocable by itself. The key of the team is shown as one of them. */

export const KeyStatus = Schema.Literals(["active", "disabled", "revoked"])
export type KeyStatus = typeof KeyStatus.Type

export const maxNameCharacters = 100
export const maxGrants = 50
export const maxPerMinute = 10_000
export const usualPerMinute = 240
/** Of a team, those that are revoked left out. */
export const maxKeys = 50
/** What a list shows: of revoked keys the newest. */
export const maxListed = 100

export const KeyScope = Schema.Literals(scopes)

export const ProjectKey = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  masked_key: Schema.String.annotate({ description: "What it begins with; the rest is known to nobody here" }),
  status: KeyStatus.annotate({ description: "Revoked is for ever" }),
  scopes: Schema.Array(KeyScope).annotate({ description: "None implies another" }),
  execute_grants: Schema.Array(Schema.String).annotate({
    description: "The routes that it may execute, where it has control:execute"
  }),
  rate_limit_per_minute: Schema.Int.annotate({ description: "Calls per minute" }),
  last_used_at: Schema.NullOr(Timestamp).annotate({ description: "Exact to a minute" }),
  secret_last_rotated_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp),
  legacy_project_secret: Schema.Boolean.annotate({ description: "Whether it is the API key of /project-secrets" }),
  created_by_user_id: Schema.NullOr(Schema.String).annotate({ description: "Null: it is the team's API key" }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ProjectKey", description: "A key of a team, without what it is recognised by." })
export type ProjectKey = typeof ProjectKey.Type

/** What creating one answers. */
export const NewProjectKey = Schema.Struct({
  ...ProjectKey.fields,
  api_key: Schema.String.annotate({ description: "The key itself, shown this once" })
}).annotate({ identifier: "NewProjectKey", description: "A key that has just been made." })
export type NewProjectKey = typeof NewProjectKey.Type

/** What a call needs of a key, as its audit says it. */
export const KeyPermission = Schema.Literals(["read", "edit", "execute", "tunnel-connect", "rotate-secret"])
export type KeyPermission = typeof KeyPermission.Type

export const KeyDecision = Schema.Literals(["allowed", "denied", "rate_limited"])
export type KeyDecision = typeof KeyDecision.Type

/** Why a call was not let in; `legacy_shadow_denied`: it was, and will not be from the cut-over on. */
export const KeyReason = Schema.Literals([
  "scope_missing",
  "grant_missing",
  "team_mismatch",
  "key_disabled",
  "key_revoked",
  "rate_limited",
  "session_required",
  "legacy_shadow_denied"
])
export type KeyReason = typeof KeyReason.Type

/** Decisions of one kind about one key within five minutes. */
export const KeyDecisions = Schema.Struct({
  id: Schema.Int,
  key_id: Schema.String,
  team_id: Schema.String,
  route_key: Schema.String.annotate({ description: "Method and path, like POST:/v1/events/:id/retry" }),
  permission: KeyPermission,
  decision: KeyDecision,
  reason: Schema.NullOr(KeyReason).annotate({ description: "Null: it was let in" }),
  count: Schema.Int.annotate({ description: "Of calls" }),
  first_seen_at: Timestamp,
  last_seen_at: Timestamp,
  created_at: Timestamp
}).annotate({ identifier: "KeyDecisions", description: "Decisions of one kind about one key within five minutes." })
export type KeyDecisions = typeof KeyDecisions.Type

/** A key that a call was made with, as far as it decides about the call. */
export interface KeyInUse {
  readonly id: string
  readonly team: string
  /** The API key of the team, which acts as an owner as far as it is not narrowed. */
  readonly isTeamKey: boolean
  readonly scopes: ReadonlyArray<Scope>
  /** Null: every route. */
  readonly grants: ReadonlyArray<string> | null
  /** Null: as many calls as the installation lets a team's key make. */
  readonly perMinute: number | null
  /** Whether its scopes and grants hold already; until then what they would refuse is let in, and noted. */
  readonly isEnforced: boolean
}

/*
 * `gwp_`, 8 characters that it is looked up by and may be seen, `_`, 32 that are secret (190 bits), and 6 of a checksum of all before
 * them, by which a typing error is told without a look at the database, and a scanner of secrets is sure of what it has found.
 */
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const lookupLength = 8
const secretLength = 32
const checksumLength = 6
const pattern = /^gwp_([0-9A-Za-z]{8})_[0-9A-Za-z]{38}$/

const checksumOf = (text: string): string => {
  let rest = crc32(text)
  let sum = ""
  for (let i = 0; i < checksumLength; i++) {
    sum = digits.charAt(rest % digits.length) + sum
    rest = Math.floor(rest / digits.length)
  }
  return sum
}

/** Whether a credential says of itself that it is one of these keys. */
export const isProjectKey = (credential: string): boolean => credential.startsWith("gwp_")

/** What a key is looked up by; null: it is none. */
export const lookupOf = (key: string): string | null =>
  pattern.test(key) && key.endsWith(checksumOf(key.slice(0, -checksumLength))) ? key.slice(4, 4 + lookupLength) : null

/** A new key. `digit`: a number below its argument, each as likely as the others and known to nobody. */
export const newProjectKey = (digit: (below: number) => number): string => {
  const some = (length: number) => Array.from({ length }, () => digits.charAt(digit(digits.length))).join("")
  const key = `gwp_${some(lookupLength)}_${some(secretLength)}`
  return key + checksumOf(key)
}

export const maskedKey = (lookup: string): string => `gwp_${lookup}_****`
