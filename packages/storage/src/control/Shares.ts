import { randomBytes } from "node:crypto"
import { Clock, Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { listed } from "@tidegate/model/Lists"
import { bodyLimits, parseJson } from "@tidegate/json/JsonText"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { ListedShare, PublicShare, Share, SharedRequest, ShareStatus } from "@tidegate/model/Share"
import { redaction } from "@tidegate/redaction/Redaction"
import * as Columns from "../journal/Columns.ts"
import type { Position } from "../reads/Cursor.ts"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import * as RequestReads from "../reads/RequestReads.ts"
import { hashToken } from "../secrets/Secrets.ts"
import { holdTeam } from "../teams/Teams.ts"

/*
 * Links that show a request to anyone. The shown data is redacted before it is stored, and independent of the request: neither
 * retention nor deletion of the request changes it. Only the hash of a link's token is stored.
 */

/** How long an expired link answers that it has expired; after that it is not found. */
const rememberedMs = 7 * 86_400_000

/** The limit of one team, including expired links that are still stored. */
export const maxShares = 10_000

const tooMany = fail(
  "TEAM_LIMIT_REACHED",
  `a team can have ${maxShares} shares; those that have ended count for 7 days more`,
  { limit: maxShares }
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

const newShareId = () => `shr_${randomBytes(12).toString("hex")}`

/**
 * Creates a link to a request; `urlOf` builds its URL from the token. `shareId` is the same for a repeated call: then the token
 * of this answer is the valid one, because nobody got the earlier one.
 */
export const share = Effect.fnUntraced(function* (
  { expiresAt, includeBody, request_id, secretNames, team_id, title }: ShareOf,
  urlOf: (token: string) => string,
  shareId: string = newShareId()
): Effect.fn.Return<Share, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { created_at, data = null, id, source_id, status, verified } = yield* RequestReads.detail(team_id, request_id)
  if (data === null) return yield* fail("PAYLOAD_UNAVAILABLE", "the payload of the request is no longer stored")
  // Checked before the long work, and again by the statement that inserts.
  const isFull =
    yield* sql`select from request_shares where team_id = ${team_id} and id <> ${shareId} offset ${maxShares - 1} limit 1`
  if (isFull.length > 0) return yield* tooMany

  // Long work on a stranger's data; redaction limits how much it looks at.
  const shown = yield* inSlices(redaction(data, { secretNames, includeBody }))
  const request: SharedRequest = { id, status, verified, created_at, ...shown }

  const now = new Date(yield* Clock.currentTimeMillis)
  const token = `rsh_${randomBytes(24).toString("hex")}`
  const made = yield* sql.withTransaction(
    Effect.andThen(
      holdTeam(team_id),
      sql`
        insert into request_shares (id, team_id, request_id, token_hash, title, snapshot, expires_at, forgotten_at, created_at, updated_at)
        select ${shareId}, ${team_id}, ${request_id}, ${hashToken(token)}, ${title}::text, ${JSON.stringify(request)}, ${expiresAt}::timestamptz,
          ${new Date(expiresAt.getTime() + rememberedMs)}::timestamptz, ${now}::timestamptz, ${now}::timestamptz
        where (select count(*) from request_shares where team_id = ${team_id} and id <> ${shareId}) < ${maxShares}
        on conflict (id) do update set token_hash = excluded.token_hash, updated_at = excluded.updated_at
          where request_shares.team_id = excluded.team_id
        returning 1`
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

/** Ends a link and deletes the data that it showed. A repetition changes nothing. */
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

/** Ends all open links to a request; returns how many there were. */
export const revokeShares = Effect.fnUntraced(function* (
  team_id: string,
  request_id: string
): Effect.fn.Return<number, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const rows = yield* sql<{ ended: boolean }>`
    with shared as (
      select id, revoked_at is null as open from request_shares where team_id = ${team_id} and request_id = ${request_id}
      order by id for no key update
    ), revoked as (
      update request_shares r set snapshot = null, revoked_at = ${now}, updated_at = ${now}
      from shared s where r.id = s.id and s.open
    )
    select open as ended from shared`
  if (rows.length === 0) return yield* notFound("share of request", request_id)
  return rows.filter(({ ended }) => ended).length
})

/** The filter of a team's shares. Empty lists do not filter. */
export interface ShareFilter {
  readonly requests: ReadonlyArray<string>
  readonly statuses: ReadonlyArray<ShareStatus>
}

interface ListedRow extends Omit<
  ListedShare,
  "access_count" | "created_at" | "expires_at" | "last_accessed_at" | "revoked_at" | "updated_at"
> {
  readonly access_count: number
  readonly created_at: Date
  readonly expires_at: Date
  readonly last_accessed_at: Date | null
  readonly revoked_at: Date | null
  readonly updated_at: Date
}

const toListed = (row: ListedRow): ListedShare => ({
  ...row,
  expires_at: row.expires_at.toISOString(),
  revoked_at: row.revoked_at?.toISOString() ?? null,
  last_accessed_at: row.last_accessed_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString()
})

/** The time of a share is not in its id, so that a position in the list says both. */
const placeOf = ({ created_at, id }: ListedRow) => ({ id, value: String(created_at.getTime()) })

const readPlace = ({ id, value = "" }: Position) =>
  /^\d{1,15}$/.test(value)
    ? Result.succeed({ at: new Date(Number(value)), id })
    : Result.fail(fail("INVALID_CURSOR", "the cursor is not one that a list returned"))

/** A page of the shares of a team, newest first. */
export const listShares = Effect.fnUntraced(function* (
  team_id: string,
  { requests, statuses }: ShareFilter,
  page: PageRequest
) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  const { key, limit } = page
  const position = yield* Effect.fromResult(positionOf(page))
  const after = position === null ? null : yield* Effect.fromResult(readPlace(position))
  const status = sql`case when s.revoked_at is not null then 'revoked' when s.expires_at <= ${now} then 'expired' else 'active' end`
  const rows = yield* sql<ListedRow>`
    select s.id, s.team_id, s.request_id, s.title, ${status} as status, s.expires_at, s.revoked_at, s.access_count::float8 as access_count,
      s.last_accessed_at, s.created_at, s.updated_at
    from request_shares s
    where ${sql.and([
      sql`s.team_id = ${team_id}`,
      sql`s.forgotten_at > ${now}`,
      ...(requests.length === 0 ? [] : [sql`s.request_id = any(${Columns.text(requests)})`]),
      ...(statuses.length === 0 ? [] : [sql`${status} = any(${Columns.text(statuses)})`]),
      ...(after === null ? [] : [sql`(s.created_at, s.id) < (${after.at}::timestamptz, ${after.id})`])
    ])}
    order by s.created_at desc, s.id desc limit ${limit + 1}`
  const { last, page: shown } = cutToLimit(rows, limit)
  return listed(shown.map(toListed), cursorAfter(key, last === null ? null : placeOf(last)))
})

interface ShareRow {
  readonly title: string | null
  readonly snapshot: string | null
  readonly expires_at: Date
  readonly revoked_at: Date | null
  readonly created_at: Date
}

const notThere = fail("SHARE_NOT_FOUND", "there is no such share")

/** Returns what the link shows to anyone with its token, and counts the access. */
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
  // Our own data, limited when it was written; only its escapes are not limited.
  const parsed = parseJson(snapshot, { ...bodyLimits, escapes: Number.POSITIVE_INFINITY })
  return {
    title,
    expires_at: expires_at.toISOString(),
    created_at: created_at.toISOString(),
    sanitized: true,
    request: parsed.kind === "json" ? (parsed.value as SharedRequest) : yield* Effect.die("a share is no JSON")
  }
})
