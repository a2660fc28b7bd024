import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { ChannelSubscription, SubscriptionStage } from "@tidegate/channels/machine/Channel"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { hashToken, Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"

/** The rows of subscriptions as the channel's actor reads and writes them. */

/** What only the provider and the gateway know of a subscription: `token` is a part of its callback URL. */
export interface SubscriptionSecrets {
  readonly token: string
  readonly secret: string
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** 32 random bytes as 43 base62 characters. */
const randomText = (): string => {
  let rest = BigInt(`0x${randomBytes(32).toString("hex")}`)
  let text = ""
  for (let at = 0; at < 43; at++) {
    text = digits.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

interface Row extends Omit<ChannelSubscription, Time> {
  readonly state: SubscriptionStage
}

type Time =
  | "verified_at"
  | "expires_at"
  | "last_renewed_at"
  | "renew_at"
  | "last_notification_at"
  | "stop_at"
  | "stopped_at"
  | "created_at"
  | "forgotten_at"

type Stored = Row & { readonly [name in Time]: Date | null } & { readonly created_at: Date }

const ms = (at: Date | null): number | null => at?.getTime() ?? null

const toSubscription = (row: Stored): ChannelSubscription => ({
  ...row,
  verified_at: ms(row.verified_at),
  expires_at: ms(row.expires_at),
  last_renewed_at: ms(row.last_renewed_at),
  renew_at: ms(row.renew_at),
  last_notification_at: ms(row.last_notification_at),
  stop_at: ms(row.stop_at),
  stopped_at: ms(row.stopped_at),
  created_at: row.created_at.getTime(),
  forgotten_at: ms(row.forgotten_at)
})

/**
 * Locks and reads the subscriptions that live, and the named ones, which have ended since the machine last looked. To be called
 * in a transaction that holds the channel.
 */
export const heldSubscriptions = Effect.fnUntraced(function* (
  source_id: string,
  known: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<ChannelSubscription>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Stored>`
    select id, adapter, definition_key, account_id, target, external_channel_id, external_resource_id, state, verified_at,
      expires_at, last_renewed_at, renew_at, last_notification_at, last_message_number::float8 as last_message_number, last_error,
      stop_at, stopped_at, created_at, forgotten_at
    from channel_subscriptions
    where source_id = ${source_id} and (forgotten_at is null or id = any(${Columns.text(known)}))
    order by id for update`
  return rows.map(toSubscription)
})

const changed = new Rows<ChannelSubscription>("c", [
  ["id", "text", ({ id }) => id, []],
  ["external_channel_id", "text", (row) => row.external_channel_id],
  ["external_resource_id", "text", (row) => row.external_resource_id],
  ["state", "text", ({ state }) => state],
  ["verified_at", "timestamptz", (row) => row.verified_at],
  ["expires_at", "timestamptz", (row) => row.expires_at],
  ["last_renewed_at", "timestamptz", (row) => row.last_renewed_at],
  ["renew_at", "timestamptz", (row) => row.renew_at],
  ["last_error", "text", ({ last_error }) => last_error?.slice(0, maxError).toWellFormed() ?? null],
  ["stop_at", "timestamptz", (row) => row.stop_at],
  ["stopped_at", "timestamptz", (row) => row.stopped_at],
  ["forgotten_at", "timestamptz", (row) => row.forgotten_at]
])

/** The longest stored error, in characters. */
const maxError = 500

/** Writes subscriptions that `heldSubscriptions` has locked. */
export const changeSubscriptions = Effect.fnUntraced(function* (
  rows: ReadonlyArray<ChannelSubscription>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  if (rows.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update channel_subscriptions set ${sql.literal(changed.assignments)} from ${changed.unnest(sql, rows)}
    where channel_subscriptions.id = c.id`
})

/** Stores a new subscription with a token and a secret of its own. */
export const createSubscription = Effect.fnUntraced(function* (
  { source_id, team_id }: { readonly team_id: string; readonly source_id: string },
  row: ChannelSubscription
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const own: SubscriptionSecrets = { token: randomText(), secret: randomText() }
  const sealing = sealedColumn(yield* Secrets, "channel_subscriptions", "secrets")
  const sealed = yield* sealing.seal({ team_id, id: row.id }, { ...own })
  yield* sql`
    insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, account_id, target, token_hash, secrets,
      state, created_at)
    values (${row.id}, ${team_id}, ${source_id}, ${row.adapter}, ${row.definition_key}, ${row.account_id}, ${row.target},
      ${hashToken(own.token)}, ${sealed}, ${row.state}, ${new Date(row.created_at)})`
})

/** The token and the secret; null: the row is gone. Fails when they cannot be decrypted: then nothing is sent. */
export const subscriptionSecrets = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<SubscriptionSecrets | null, SqlError.SqlError | SecretUnreadable, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ secrets: string }>`
    select secrets from channel_subscriptions where id = ${id} and team_id = ${team_id}`
  if (row === undefined) return null
  const { secret, token } = yield* sealedColumn(yield* Secrets, "channel_subscriptions", "secrets").open(
    { team_id, id },
    row.secrets
  )
  return typeof token === "string" && typeof secret === "string" ? { token, secret } : null
})
