import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { ChannelSubscription } from "@tidegate/channels/machine/Channel"
import { Rows } from "../journal/Rows.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { hashToken, Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"

/** The rows of subscriptions as the channel's actor reads and writes them. */

/** The secrets of a subscription, which only the provider and the gateway know. `token` is a part of its callback URL. */
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

/** The longest stored error, in characters. */
const maxError = 500

/** Subscriptions of a source as they are now. */
export const changedSubscriptions = new Rows<ChannelSubscription & { readonly source_id: string }>("n", [
  ["id", "text", ({ id }) => id, []],
  ["source_id", "text", ({ source_id }) => source_id, []],
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

/** Stores a new subscription with its own token and secret. */
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
