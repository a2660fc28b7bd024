import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { listed } from "@tidegate/model/Lists"
import type { ProviderAccount } from "@tidegate/model/ProviderAccount"
import { accountStateOf } from "@tidegate/model/ProviderSource"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "../reads/Paging.ts"
import { unused, type Usage, usageOf } from "./AccountUsage.ts"
import { type AccountRow, accountColumns } from "./ProviderAccounts.ts"

/** The providers that this process knows. An account of an unknown provider cannot be connected again. */
type IsKnown = (provider_key: string) => boolean

const iso = (date: Date | null): string | null => date?.toISOString() ?? null

const show = (row: AccountRow, usage: Usage, isKnown: IsKnown): ProviderAccount => {
  const state = accountStateOf(row)
  const { actions, sources, used_by, workflows } = usage
  return {
    id: row.id,
    team_id: row.team_id,
    provider_key: row.provider_key,
    name: row.name,
    email: row.email,
    external_account_id: row.external_account_id,
    status: row.disabled_at !== null ? "disabled" : state === "active" ? "enabled" : "error",
    scopes: row.scopes,
    account_kind: row.connection === "oauth2" ? "user" : "service",
    connection: row.connection,
    base_url: row.base_url,
    token_expires_at: iso(row.token_expires_at),
    revoked_at: iso(row.revoked_at),
    last_error: row.last_error,
    lifecycle: {
      state,
      reconnect_mode: row.connection === "oauth2" ? "oauth2" : "credentials",
      can_revoke: state !== "revoked",
      can_reconnect: isKnown(row.provider_key)
    },
    usage: { sources, actions, workflows, lookups: 0, total: sources + actions + workflows },
    used_by,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString()
  }
}

const shown = Effect.fnUntraced(function* (team_id: string, rows: ReadonlyArray<AccountRow>, isKnown: IsKnown) {
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const usage = yield* usageOf(team_id, ids)
  return rows.map((row) => show(row, usage.get(row.id) ?? unused, isKnown))
})

/** A page of a team's accounts, newest first. */
export const listAccounts = Effect.fnUntraced(function* (team_id: string, page: PageRequest, isKnown: IsKnown) {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const rows = yield* sql<AccountRow>`
    select ${accountColumns(sql)} from provider_accounts a
    where a.team_id = ${team_id} and ${position === null ? sql`true` : sql`a.id < ${position.id}`}
    order by a.id desc limit ${page.limit + 1}`
  const { last, page: ofPage } = cutToLimit(rows, page.limit)
  return listed(yield* shown(team_id, ofPage, isKnown), cursorAfter(page.key, last))
})

export const getAccount = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  isKnown: IsKnown
): Effect.fn.Return<ProviderAccount, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<AccountRow>`
    select ${accountColumns(sql)} from provider_accounts a where a.team_id = ${team_id} and a.id = ${id}`
  const [account] = yield* shown(team_id, rows, isKnown)
  return account ?? (yield* notFound("provider_account", id))
})
