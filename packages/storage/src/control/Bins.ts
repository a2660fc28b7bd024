import { randomBytes } from "node:crypto"
import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, isId, newId, prefixes } from "@tidegate/model/Ids"
import { binLife } from "@tidegate/model/PublicBin"
import { SourceMethod } from "@tidegate/model/Source"
import type { SourceConfig } from "@tidegate/resources/Source"
import { constantTimeEqual, hashToken } from "../secrets/Secrets.ts"
import { binsTeam } from "../teams/Teams.ts"

/*
 * Public bins: receivers that anyone can create. A bin is a source of `binsTeam` without connections, and a row of `public_bins`
 * with its end. An expired bin stays as a tombstone for a day and is then not found. `BinCapture.ts` stores its requests,
 * `BinClaim.ts` gives it to a team, `RetentionBins.ts` deletes expired bins.
 */

/** How long an expired bin answers that it has expired. */
export const rememberedMs = 86_400_000

/** The settings of a bin's source: it accepts everything. */
const config: SourceConfig = {
  auth_type: null,
  allowed_http_methods: SourceMethod.literals,
  custom_response: null,
  mode: "webhook",
  proxy: null,
  chat_defer_ephemeral: false,
  rate_limit: null,
  rate_limit_period: null
}

/** The name of its source. */
export const binName = (id: string): string => `bin-${id}`

/** A new bin. Its token is returned only here. */
export interface NewBin {
  readonly id: string
  readonly token: string
  readonly expiresAt: Date
}

/**
 * Creates a bin, unless `max` unclaimed bins exist: then it returns the time at which the first of them ends. Processes that
 * create one at the same moment may each exceed the limit by one.
 */
export const createBin = Effect.fnUntraced(function* (
  max: number
): Effect.fn.Return<NewBin | Date, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const nowMs = yield* Clock.currentTimeMillis
  const now = new Date(nowMs)
  const id = newId(prefixes.source, nowMs)
  const token = `pbn_${randomBytes(24).toString("hex")}`
  const expiresAt = new Date(nowMs + binLife.seconds * 1_000)
  const living = sql`from public_bins where claimed_at is null and expires_at > ${now}`
  const made = yield* sql`
    with source as (
      insert into sources (id, team_id, name, type, config, created_at, updated_at)
      select ${id}, ${binsTeam}, ${binName(id)}, 'WEBHOOK', ${JSON.stringify(config)}::jsonb, ${now}, ${now}
      where (select count(*) ${living}) < ${max}
      returning id
    )
    insert into public_bins (source_id, team_id, token_hash, minute, expires_at, created_at)
    select id, ${binsTeam}, ${hashToken(token)}, ${new Date(nowMs - (nowMs % 60_000))}, ${expiresAt}, ${now} from source returning 1`
  if (made.length > 0) return { id, token, expiresAt }
  const [first] = yield* sql<{ expires_at: Date | null }>`select min(expires_at) as expires_at ${living}`
  return first?.expires_at ?? now
})

export interface BinRow {
  readonly team_id: string
  readonly token_hash: string
  readonly expires_at: Date
  readonly claimed_at: Date | null
  readonly created_at: Date
}

/** With clocks of processes this far apart, all requests of a bin are still found. */
const clocksApartMs = 3_600_000

/** The lowest possible id of a bin's requests, by when the bin was created (Unix ms). */
export const firstRequestOf = (madeAt: number): string => idBound(prefixes.request, madeAt - clocksApartMs)

/** Bins that expired before this are deleted. */
export const forgottenBefore = (nowMs: number): Date => new Date(nowMs - rememberedMs)

/**
 * The bin for its token, claimed or not. A wrong token takes as long as the right one, whichever characters match. The existence
 * of a bin is no secret: its URL shows its id.
 */
export const binOf = Effect.fnUntraced(function* (
  id: string,
  token: string,
  locking: "lock" | "look"
): Effect.fn.Return<BinRow, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const given = hashToken(token)
  if (!isId(prefixes.source, id)) return yield* notFound("bin", id)
  const now = yield* Clock.currentTimeMillis
  const [row] = yield* sql<BinRow>`
    select team_id, token_hash, expires_at, claimed_at, created_at from public_bins
    where source_id = ${id} and (claimed_at is not null or expires_at > ${forgottenBefore(now)})
    ${sql.literal(locking === "lock" ? "for update" : "")}`
  if (row === undefined) return yield* notFound("bin", id)
  if (!constantTimeEqual(given, row.token_hash)) return yield* invalidToken
  if (row.claimed_at === null && row.expires_at.getTime() <= now) {
    return yield* fail("BIN_EXPIRED", "the bin has expired")
  }
  return row
})

const invalidToken = fail("INVALID_BIN_TOKEN", "send the bin's token: x-bin-token: <token>")

/** A bin that its token may read: once it is claimed, the token is invalid. */
export const openBin = Effect.fnUntraced(function* (
  id: string,
  token: string
): Effect.fn.Return<
  { readonly team_id: string; readonly expires_at: Date },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const { claimed_at, expires_at, team_id } = yield* binOf(id, token, "look")
  if (claimed_at !== null) {
    return yield* fail(
      "INVALID_BIN_TOKEN",
      "the bin was claimed; it is a source of a team now, and its token has ended"
    )
  }
  return { team_id, expires_at }
})
