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
 * Receivers that strangers make for themselves. A bin is a source of `binsTeam`, without connections, and a row of `public_bins`, by which it ends:
 * what is past its time is a tombstone for a day, and then was never there. `BinCapture.ts` stores what it receives, `BinClaim.ts` gives it to a team,
 * `RetentionBins.ts` clears away what is over.
 */

/** For so long after its end a bin says that it has ended. */
export const rememberedMs = 86_400_000

/** What a bin is as a source: it takes whatever comes. */
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

/** Its name, as a source. */
export const binName = (id: string): string => `bin-${id}`

/** A bin that has just been made. Its token is told here alone. */
export interface NewBin {
  readonly id: string
  readonly token: string
  readonly expiresAt: Date
}

/**
 * Makes a bin, unless there are `most` already that live and nobody has claimed: then the time at which the first of them ends. Processes that make
 * one at the same moment may each come to one more.
 */
export const createBin = Effect.fnUntraced(function* (
  most: number
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
      where (select count(*) ${living}) < ${most}
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

/** Clocks of processes that are that far apart still find all requests of a bin. */
const clocksApartMs = 3_600_000

/** What the ids of a bin's requests begin with at the least, by when the bin was made (Unix ms). */
export const firstRequestOf = (madeAt: number): string => idBound(prefixes.request, madeAt - clocksApartMs)

/** An expired bin is forgotten once that was so long ago. */
export const forgottenBefore = (nowMs: number): Date => new Date(nowMs - rememberedMs)

/**
 * The bin, for whoever has its token, claimed or not. A wrong token takes as long as the right one, whatever of it is right; that there is a bin of that id is no
 * secret: its URL says so.
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

/** A bin that somebody may read by its token: from when it is claimed, the token is worth nothing. */
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
