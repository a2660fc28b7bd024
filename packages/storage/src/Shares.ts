import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { bodyLimits, parseJson } from "@tidegate/model/JsonText"
import { inTurns } from "@tidegate/model/LoopTurn"
import type { PublicShare, Share, SharedRequest } from "@tidegate/model/Share"
import { redaction } from "@tidegate/signatures/Redaction"
import * as RequestReads from "./reads/RequestReads.ts"
import { hashToken } from "./Secrets.ts"
import { holdTeam } from "./Teams.ts"

/*
 * Links by which strangers see a request. What they see is redacted before it is stored, and stands by itself: neither retention nor the
 * request's deletion changes it. Of a link's token only the hash is kept.
 */

/** For so long after its end a link says that it has ended; then it was never there. */
const rememberedMs = 7 * 86_400_000

/** Of one team, those that have ended and are not forgotten yet counted too. */
export const mostShares = 10_000

const tooMany = fail(
  "TEAM_LIMIT_REACHED",
  `a team can have ${mostShares} shares; those that have ended count for 7 days more`,
  { limit: mostShares }
)

const idPattern = /^shr_[0-9a-f]{24}$/
const tokenPattern = /^rsh_[0-9a-f]{48}$/

interface ShareOf {
  readonly team_id: string
  readonly request_id: string
  readonly title: string | null
  readonly expiresAt: Date
  readonly secretNames: ReadonlyArray<string>
  readonly includeBody: boolean
}

/** A new link to a request; `urlOf` its token. */
export const share = Effect.fnUntraced(function* (
  { expiresAt, includeBody, request_id, secretNames, team_id, title }: ShareOf,
  urlOf: (token: string) => string
): Effect.fn.Return<Share, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { created_at, data = null, id, source_id, status, verified } = yield* RequestReads.detail(team_id, request_id)
  if (data === null) return yield* fail("PAYLOAD_UNAVAILABLE", "the payload of the request is no longer stored")
  // Asked before the long work, and again by the statement that makes it.
  const isFull = yield* sql`select from request_shares where team_id = ${team_id} offset ${mostShares - 1} limit 1`
  if (isFull.length > 0) return yield* tooMany

  // Long work on what a stranger sent; what is looked at is bounded there.
  const shown = yield* inTurns(redaction(data, { secretNames, includeBody }))
  const request: SharedRequest = { id, status, verified, created_at, ...shown }

  const now = new Date(yield* Clock.currentTimeMillis)
  const shareId = `shr_${randomBytes(12).toString("hex")}`
  const token = `rsh_${randomBytes(24).toString("hex")}`
  const made = yield* sql.withTransaction(
    Effect.andThen(
      holdTeam(team_id),
      sql`
        insert into request_shares (id, team_id, request_id, token_hash, title, snapshot, expires_at, forgotten_at, created_at, updated_at)
        select ${shareId}, ${team_id}, ${request_id}, ${hashToken(token)}, ${title}::text, ${JSON.stringify(request)}, ${expiresAt}::timestamptz,
          ${new Date(expiresAt.getTime() + rememberedMs)}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
        where (select count(*) from request_shares where team_id = ${team_id}) < ${mostShares} returning 1`
    )
  )
  if (made.length === 0) return yield* tooMany
  const url = urlOf(token)
  return {
    id: shareId,
    token,
    team_id,
    request_id,
    source_id,
    title,
    url,
    share_url: url,
    expires_at: expiresAt.toISOString(),
    revoked_at: null,
    access_count: 0,
    last_accessed_at: null,
    created_at: now.toISOString(),
    updated_at: now.toISOString(),
    sanitized: true,
    request
  }
})

/** Ends a link, and forgets what it showed. Repeated, it changes nothing. */
export const revokeShare = Effect.fnUntraced(function* (
  team_id: string,
  request_id: string,
  id: string
): Effect.fn.Return<void, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const rows = idPattern.test(id)
    ? yield* sql`
        update request_shares set snapshot = null, revoked_at = coalesce(revoked_at, ${now}), updated_at = ${now}
        where id = ${id} and team_id = ${team_id} and request_id = ${request_id} returning 1`
    : []
  if (rows.length === 0) yield* notFound("share", id)
})

interface ShareRow {
  readonly title: string | null
  readonly snapshot: string | null
  readonly expires_at: Date
  readonly revoked_at: Date | null
  readonly created_at: Date
}

const notThere = fail("SHARE_NOT_FOUND", "there is no such share")

/** What the link shows, to whoever has its token; counts that it was opened. */
export const openShare = Effect.fnUntraced(function* (
  token: string
): Effect.fn.Return<PublicShare, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  if (!tokenPattern.test(token)) return yield* notThere
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const hash = hashToken(token)
  const [row] = yield* sql<ShareRow>`
    select title, snapshot, expires_at, revoked_at, created_at from request_shares
    where token_hash = ${hash} and forgotten_at > ${now}`
  if (row === undefined) return yield* notThere
  const { created_at, expires_at, revoked_at, snapshot, title } = row
  if (revoked_at !== null || snapshot === null) return yield* fail("SHARE_REVOKED", "the share was revoked")
  if (expires_at <= now) return yield* fail("SHARE_EXPIRED", "the share has expired")
  yield* sql`
    update request_shares set access_count = access_count + 1, last_accessed_at = ${now} where token_hash = ${hash}`
  // Written by us, bounded then; only its escapes are not.
  const parsed = parseJson(snapshot, { ...bodyLimits, escapes: Number.POSITIVE_INFINITY })
  return {
    title,
    expires_at: expires_at.toISOString(),
    created_at: created_at.toISOString(),
    sanitized: true,
    request: parsed.kind === "json" ? (parsed.value as SharedRequest) : yield* Effect.die("a share is no JSON")
  }
})
