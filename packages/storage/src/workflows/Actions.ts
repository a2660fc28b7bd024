import { Clock, Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Credentials } from "@tidegate/actions/Provider"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { readJson } from "@tidegate/json/JsonText"
import type { Action } from "@tidegate/model/Action"
import { action, type ActionConfig } from "@tidegate/resources/Action"
import { checkContent, contentOf, isSameContent, shownContent } from "@tidegate/resources/action/ActionContent"
import { actionsHeld } from "./ActionHolds.ts"
import { keepVersion } from "./ActionVersions.ts"
import { HotSql } from "../Database.ts"
import { presentOf } from "../control/PresentOf.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import { makeStore } from "../control/MakeStore.ts"
import { nobody, type Store, type StoredRow, type Values } from "../control/Store.ts"
import { refuseUsedBySteps, stepsNaming } from "./WorkflowLinks.ts"

/** A row of `actions`. */
export interface ActionRow extends StoredRow {
  readonly provider_key: string
  readonly action_key: string
  readonly config: ActionConfig
  /** Encrypted. */
  readonly credentials: string | null
  readonly version: number
  readonly disabled_at: Date | null
}

/**
 * The saved actions of teams. Their inputs have versions, because runs are pinned to one; a version stays as long as a run may
 * use it. Credentials, the rate limit and the disabled state are always the current ones.
 */
export class Actions extends Context.Service<Actions, Store<typeof action>>()("@tidegate/storage/Actions") {
  static readonly layer: Layer.Layer<Actions, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Actions,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  return yield* makeStore<ActionRow, typeof action>(action, {
    show: Effect.fnUntraced(function* (rows) {
      const [first] = rows
      if (first === undefined) return []
      const ids = rows.map(({ id }) => id)
      const steps = yield* stepsNaming(sql, first.team_id, ids)
      const held = yield* Effect.flatMap(Clock.currentTimeMillis, (now) => actionsHeld(sql, first.team_id, ids, now))
      return rows.map((row): Action => ({
        id: row.id,
        team_id: row.team_id,
        name: row.name,
        type: "ACTION",
        status: row.disabled_at === null ? "enabled" : "disabled",
        disabled_at: row.disabled_at?.toISOString() ?? null,
        held_until: held.get(row.id)?.toISOString() ?? null,
        provider_key: row.provider_key,
        action_key: row.action_key,
        config: {
          auth_mode: row.config.auth_mode,
          provider_account_id: row.config.provider_account_id ?? null,
          credentials_configured: row.credentials !== null,
          schema_version: row.config.schema_version,
          schema_provenance: "catalog",
          inputs: shownContent(contentOf(row)),
          rate_limit: row.config.rate_limit,
          rate_limit_period: row.config.rate_limit_period
        },
        workflow_steps_count: steps.get(row.id) ?? 0,
        created_at: row.created_at.toISOString(),
        updated_at: row.updated_at.toISOString()
      }))
    }),
    prepare: Effect.fnUntraced(function* (owner, before, next) {
      if (next["config"] === undefined) return next
      const config = readJson(next["config"] as string) as ActionConfig
      const content = contentOf({
        provider_key: next["provider_key"] as string,
        action_key: next["action_key"] as string,
        config
      })
      yield* mustBeConnected(sql, owner.team_id, content.provider_key, config, before?.config ?? null)
      const stored = before === null ? null : contentOf(before)
      const isKept = next["credentials"] === undefined
      const holds = (isKept ? (before?.credentials ?? null) : next["credentials"]) !== null
      yield* checkContent(content, stored, holds ? (isKept ? "stored" : "written") : "none")
      const version =
        before === null ? 1 : isSameContent(contentOf(before), content) ? before.version : before.version + 1
      return { ...next, version } satisfies Values
    }),
    // A workflow that comes to name it locks the action's row until its commit: a search after the lock finds that workflow.
    remove: (row) => Effect.as(refuseUsedBySteps(sql, "action", row), { credentials: null }),
    alone: () => null,
    follow: Effect.fnUntraced(function* (before, after, at) {
      // Another target may be meant, or another credential: a pause that the last one asked for ends.
      if (before !== null) {
        yield* sql`delete from action_holds where team_id = ${after.team_id} and target = ${after.id}`
      }
      if (after.deleted_at !== null) yield* sql`delete from action_versions where action_id = ${after.id}`
      else if (before?.version !== after.version) yield* keepVersion(sql, after, contentOf(after), at)
      return nobody
    })
  })
})

/** Fails unless the account that an action comes to name is a connected one of its provider. One that it has named stays. */
const mustBeConnected = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  provider_key: string,
  { provider_account_id = null }: ActionConfig,
  before: ActionConfig | null
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  if (provider_account_id === null || provider_account_id === before?.provider_account_id) return
  const rows = yield* sql`
    select from provider_accounts where id = ${provider_account_id} and team_id = ${team_id} and provider_key = ${provider_key}
      and disabled_at is null for key share`
  if (rows.length === 0) {
    yield* fail("PROVIDER_ACCOUNT_NOT_CONNECTED", `there is no connected account of ${provider_key} with that id`)
  }
})

/** A saved action with its current settings. */
export interface LoadedAction {
  readonly id: string
  readonly name: string
  readonly provider_key: string
  readonly action_key: string
  readonly version: string
  readonly inputs: Schema.JsonObject
  readonly disabled: boolean
  /** Until when its target accepts no calls (Unix ms), as stored; 0: none is stored. */
  readonly heldUntil: number
  readonly credentials: Credentials
  readonly rate_limit: number | null
  readonly rate_limit_period: ActionConfig["rate_limit_period"]
}

/**
 * A saved action with its current settings; null when it does not exist (any more). Fails with `SecretUnreadable` when its
 * credentials cannot be decrypted: the action must not be called without them.
 */
export const loadAction = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<LoadedAction | null, SqlError.SqlError | SecretUnreadable, HotSql | Secrets> {
  const hot = yield* HotSql
  const [row] = yield* hot<ActionRow & { readonly held_until: Date | null }>`
    select id, team_id, name, provider_key, action_key, config, credentials, disabled_at,
      (select held_until from action_holds h where h.team_id = actions.team_id and h.target = actions.id) from actions
    where id = ${id} and ${presentOf(hot, team_id)}`
  if (row === undefined) return null
  const { action_key, config, credentials, disabled_at, held_until, name, provider_key } = row
  const values = yield* sealedColumn(yield* Secrets, "actions", "credentials").open(row, credentials)
  return {
    id,
    name,
    provider_key,
    action_key,
    version: config.schema_version,
    inputs: config.inputs,
    disabled: disabled_at !== null,
    heldUntil: held_until?.getTime() ?? 0,
    credentials: { mode: config.auth_mode, values: Object.assign({}, values, accountIn(config)) },
    rate_limit: config.rate_limit,
    rate_limit_period: config.rate_limit_period
  }
})

/** The account is named among the credentials of a call. */
const accountIn = ({ provider_account_id = null }: ActionConfig): Schema.JsonObject =>
  provider_account_id === null ? {} : { provider_account_id }

/** The rate limit of a saved action. */
export interface ActionPace {
  readonly team_id: string
  /** Calls per period; null: unlimited. */
  readonly limit: number | null
  readonly period: ActionConfig["rate_limit_period"]
}

/** The rate limit of a saved action; null: there is no such action. */
export const readActionPace = Effect.fnUntraced(function* (
  id: string
): Effect.fn.Return<ActionPace | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ team_id: string; config: ActionConfig }>`
    select team_id, config from actions where id = ${id} and deleted_at is null`
  if (row === undefined) return null
  const { rate_limit, rate_limit_period } = row.config
  return { team_id: row.team_id, limit: rate_limit, period: rate_limit_period ?? "second" }
})
