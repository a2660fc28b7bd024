import { crc32 } from "node:zlib"
import { Schema } from "effect"
import { type Scope, scopes } from "./Permission.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * The keys of a team. Each has only the rights that it was given, and can be revoked on its own. The team's API key is listed
 * among them.
 */

export const KeyStatus = Schema.Literals(["active", "disabled", "expired", "revoked"])
export type KeyStatus = typeof KeyStatus.Type
/** The statuses that are stored. An active key whose end has come is expired. */
export type StoredStatus = Exclude<KeyStatus, "expired">

/** The status of a key at a time. Both times are in ms; a null end never comes. */
export const statusAt = (stored: StoredStatus, expiresAt: number | null, now: number): KeyStatus =>
  stored === "active" && expiresAt !== null && expiresAt <= now ? "expired" : stored

export const maxNameCharacters = 100
export const maxGrants = 50
export const maxPerMinute = 10_000
export const usualPerMinute = 240
/** The limit of one team, not counting revoked keys. */
export const maxKeys = 50
/** The length of the list, including the newest revoked keys. */
export const maxListed = 100
/** How far ahead a key may end, in days. */
export const maxExpiryDays = 3_650

export const KeyScope = Schema.Literals(scopes)

export const ProjectKey = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  masked_key: Schema.String.annotate({ description: "The beginning of the key. The rest is not stored" }),
  status: KeyStatus.annotate({
    description: "A revoked key stays revoked. An expired key is active again when its owner moves `expires_at`"
  }),
  scopes: Schema.Array(KeyScope).annotate({ description: "No scope includes another" }),
  execute_grants: Schema.Array(Schema.String).annotate({
    description: "The routes that the key may execute, if it has control:execute"
  }),
  rate_limit_per_minute: Schema.Int.annotate({ description: "Calls per minute" }),
  last_used_at: Schema.NullOr(Timestamp).annotate({ description: "Exact to a minute" }),
  secret_last_rotated_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp).annotate({
    description: "From then on the key is refused. Null: it does not expire"
  }),
  legacy_project_secret: Schema.Boolean.annotate({ description: "Whether the key is the API key of /project-secrets" }),
  created_by_user_id: Schema.NullOr(Schema.String).annotate({ description: "Null: the key is the team's API key" }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "ProjectKey", description: "A key of a team, without its secret value." })
export type ProjectKey = typeof ProjectKey.Type

/** The answer when a key is created. */
export const NewProjectKey = Schema.Struct({
  ...ProjectKey.fields,
  api_key: Schema.String.annotate({ description: "The key, which is shown only once" })
}).annotate({ identifier: "NewProjectKey", description: "A new key." })
export type NewProjectKey = typeof NewProjectKey.Type

/** What a call needs from a key, as the audit names it. */
export const KeyPermission = Schema.Literals(["read", "edit", "execute", "tunnel-connect", "rotate-secret"])
export type KeyPermission = typeof KeyPermission.Type

export const KeyDecision = Schema.Literals(["allowed", "denied", "rate_limited"])
export type KeyDecision = typeof KeyDecision.Type

/** Why a call was refused. `legacy_shadow_denied`: it was allowed, and will be refused after the cut-over. */
export const KeyReason = Schema.Literals([
  "scope_missing",
  "grant_missing",
  "team_mismatch",
  "key_disabled",
  "key_revoked",
  "key_expired",
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
  reason: Schema.NullOr(KeyReason).annotate({ description: "Null: the call was allowed" }),
  count: Schema.Int.annotate({ description: "Number of calls" }),
  first_seen_at: Timestamp,
  last_seen_at: Timestamp,
  created_at: Timestamp
}).annotate({ identifier: "KeyDecisions", description: "Decisions of one kind about one key within five minutes." })
export type KeyDecisions = typeof KeyDecisions.Type

/** The key of a call, with what decides about the call. */
export interface KeyInUse {
  readonly id: string
  readonly team: string
  /** The team's API key, which acts as an owner unless it was narrowed. */
  readonly isTeamKey: boolean
  readonly scopes: ReadonlyArray<Scope>
  /** Null: every route. */
  readonly grants: ReadonlyArray<string> | null
  /** Null: the installation's limit for a team's key. */
  readonly perMinute: number | null
  /** Whether its scopes and grants are enforced already; until then, calls that they would refuse are allowed and recorded. */
  readonly isEnforced: boolean
}

/*
 * `gwp_`, 8 visible characters that identify the key, `_`, 32 secret characters (190 bits), and a checksum of 6 characters over
 * all of them. The checksum finds typing errors without a query, and lets secret scanners recognize a key with certainty.
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

/** Whether a credential has the form of a project key. */
export const isProjectKey = (credential: string): boolean => credential.startsWith("gwp_")

/** The identifying characters of a key; null: it is not a valid key. */
export const lookupOf = (key: string): string | null =>
  pattern.test(key) && key.endsWith(checksumOf(key.slice(0, -checksumLength))) ? key.slice(4, 4 + lookupLength) : null

/** A new key. `digit` returns a random number below its argument, uniformly distributed and unpredictable. */
export const newProjectKey = (digit: (below: number) => number): string => {
  const some = (length: number) => Array.from({ length }, () => digits.charAt(digit(digits.length))).join("")
  const key = `gwp_${some(lookupLength)}_${some(secretLength)}`
  return key + checksumOf(key)
}

export const maskedKey = (lookup: string): string => `gwp_${lookup}_****`
