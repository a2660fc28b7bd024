import { createHash } from "node:crypto"
import { Clock, Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Credentials } from "@tidegate/actions/Provider"
import { formatterKey, sentToOf } from "@tidegate/actions/Providers"
import { faultsOfInputs } from "@tidegate/actions/SavedInputs"
import { readJson } from "@tidegate/json/JsonText"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Action } from "@tidegate/model/Action"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { action, type ActionConfig } from "@tidegate/resources/Action"
import { type Looked, placesIn, shownInputs } from "@tidegate/workflows/WrittenCredentials"
import { catalogFor, type SavedContent } from "./ActionCatalog.ts"
import { actionsHeld } from "./ActionHolds.ts"
import { HotSql } from "../Database.ts"
import { presentOf } from "../control/PresentOf.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import { makeStore, nobody, type Store, type StoredRow, type Values } from "../control/Store.ts"
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

/** The part of an action that a run is pinned to. */
export const contentOf = ({
  action_key,
  config: { inputs, schema_version },
  provider_key
}: Pick<ActionRow, "provider_key" | "action_key" | "config">): SavedContent => ({
  provider_key,
  action_key,
  version: schema_version,
  inputs
})

const hashOf = (content: SavedContent): string =>
  `sha256:${createHash("sha256").update(JSON.stringify(content)).digest("hex")}`

/** Fails when no provider has the action, or it does not take these inputs. */
const judge = Effect.fnUntraced(function* (content: SavedContent): Effect.fn.Return<void, GatewayError> {
  const catalog = yield* catalogFor([], new Map([["", content]]))
  const found = catalog.saved?.("")?.action
  const faults =
    found === undefined
      ? [{ path: "action_key", message: "no provider has this action: see GET /action-providers" }]
      : (yield* inSlices(faultsOfInputs(found, content.inputs))).map(({ message, path }) => ({
          path: `config.inputs.${path}`,
          message
        }))
  if (faults.length > 0) yield* invalid(faults)
})

/**
 * Inputs must not contain credentials: everyone who may read the action sees them, and each version keeps them. Inputs that were
 * saved before this rule stay until they are changed, and are masked where they are shown.
 */
const judgeInputs = Effect.fnUntraced(function* (
  content: SavedContent,
  kept: SavedContent | null
): Effect.fn.Return<void, GatewayError> {
  if (kept !== null && hashOf(kept) === hashOf(content)) return
  const message =
    "a credential is written out, and whoever reads the action would read it: give it in credentials, or take the value from the run by a template"
  const places = placesIn(content.inputs, lookedAt(content.provider_key))
  if (places.length > 0) yield* invalid(places.map((place) => ({ path: `config.inputs.${place}`, message })))
})

const lookedAt = (provider: string): Looked => (provider === formatterKey ? "looks" : "names and looks")

/**
 * Credentials belong to the target of the saved inputs: the target is written out, and with another target they have to be
 * entered again. Fails closed: a user who may change an action may not read its credentials, and could otherwise have them sent
 * to a server of their own. `kept`: the previous target.
 */
const judgeTarget = Effect.fnUntraced(function* (
  content: SavedContent,
  kept: SavedContent | null
): Effect.fn.Return<void, GatewayError> {
  const {
    inputs: [input],
    of
  } = sentToOf(content)
  const target = of(content.inputs)
  if (target === null) {
    const message = "must be written out, without templates in its host: the credentials are sent there"
    yield* invalid([{ path: `config.inputs.${input}`, message }])
  }
  if (kept !== null && of(kept.inputs) !== target) {
    const message = "must be written anew, whole: what is stored was for another address"
    yield* invalid([{ path: "config.credentials", message }])
  }
})

/** No run is older than this: no run uses a version that was replaced before. */
const keptDays = 61
/**
 * How many earlier versions of an action are kept, however often it is saved. A run that began with an older one fails at the
 * step.
 */
const keptAtMost = 100

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const keepVersion = Effect.fnUntraced(function* (after: ActionRow, at: Date) {
    const { id, team_id, version } = after
    const content = contentOf(after)
    yield* sql`
      update action_versions set superseded_at = ${at} where action_id = ${id} and superseded_at is null`
    yield* sql`
      delete from action_versions where action_id = ${id} and (
        superseded_at < ${at}::timestamptz - make_interval(days => ${keptDays})
        or version <= ${version - keptAtMost}::int4)`
    yield* sql`
      insert into action_versions (action_id, version, team_id, schema_version, inputs, content_hash)
      values (${id}, ${version}, ${team_id}, ${content.version}, ${JSON.stringify(content.inputs)}, ${hashOf(content)})`
  })

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
          provider_account_id: null,
          credentials_configured: row.credentials !== null,
          schema_version: row.config.schema_version,
          schema_provenance: "catalog",
          inputs: shownInputs(row.config.inputs, lookedAt(row.provider_key)),
          rate_limit: row.config.rate_limit,
          rate_limit_period: row.config.rate_limit_period
        },
        workflow_steps_count: steps.get(row.id) ?? 0,
        created_at: row.created_at.toISOString(),
        updated_at: row.updated_at.toISOString()
      }))
    }),
    prepare: Effect.fnUntraced(function* (_owner, before, next) {
      if (next["config"] === undefined) return next
      const config = readJson(next["config"] as string) as ActionConfig
      const content = contentOf({
        provider_key: next["provider_key"] as string,
        action_key: next["action_key"] as string,
        config
      })
      yield* judge(content)
      yield* judgeInputs(content, before === null ? null : contentOf(before))
      const isKept = next["credentials"] === undefined
      const holds = (isKept ? (before?.credentials ?? null) : next["credentials"]) !== null
      if (holds) yield* judgeTarget(content, isKept && before !== null ? contentOf(before) : null)
      const isSame = before !== null && hashOf(contentOf(before)) === hashOf(content)
      const version = before === null ? 1 : isSame ? before.version : before.version + 1
      return { ...next, version } satisfies Values
    }),
    // A workflow that comes to name it locks the action's row until its commit: a search after the lock finds that workflow.
    remove: (row) => Effect.as(refuseUsedBySteps(sql, "action", row), { credentials: null }),
    createsMore: true,
    follow: Effect.fnUntraced(function* (before, after, at) {
      // Another target may be meant, or another credential: what the last one has said is not held against it.
      if (before !== null) {
        yield* sql`delete from action_holds where team_id = ${after.team_id} and target = ${after.id}`
      }
      if (after.deleted_at !== null) yield* sql`delete from action_versions where action_id = ${after.id}`
      else if (before?.version !== after.version) yield* keepVersion(after, at)
      return nobody
    })
  })
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
  /** Until when its target takes nothing more (Unix ms), as it is stored; 0: nothing is. */
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
    credentials: { mode: config.auth_mode, values },
    rate_limit: config.rate_limit,
    rate_limit_period: config.rate_limit_period
  }
})

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

/** A version of a saved action: a run that began with it uses it to its end. */
export interface PinnedAction extends SavedContent {
  readonly id: string
  readonly name: string
  /** The revision of the action. */
  readonly revision: number
  readonly content_hash: string
  readonly updated_at: string
}

interface PinnedRow {
  readonly id: string
  readonly name: string
  readonly provider_key: string
  readonly action_key: string
  readonly revision: number
  readonly schema_version: string
  readonly inputs: Schema.JsonObject
  readonly content_hash: string
  readonly updated_at: Date
}

const pinnedOf = ({ schema_version, updated_at, ...row }: PinnedRow): PinnedAction => ({
  ...row,
  version: schema_version,
  updated_at: updated_at.toISOString()
})

/** The current versions of the saved actions with these ids, for a new run to be pinned to. */
export const currentActions = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, PinnedAction>, SqlError.SqlError, HotSql> {
  if (ids.length === 0) return new Map()
  const hot = yield* HotSql
  const rows = yield* hot<PinnedRow>`
    select a.id, a.name, a.provider_key, a.action_key, v.version as revision, v.schema_version, v.inputs, v.content_hash, a.updated_at
    from actions a join action_versions v on v.action_id = a.id and v.version = a.version
    where a.id = any(${[...ids]}) and a.team_id = ${team_id} and a.deleted_at is null`
  return new Map(rows.map((row) => [row.id, pinnedOf(row)]))
})

/** The versions that a run was pinned to. A missing one was deleted meanwhile. */
export const pinnedActions = Effect.fnUntraced(function* (
  team_id: string,
  pins: ReadonlyArray<{ readonly id: string; readonly revision: number }>
): Effect.fn.Return<ReadonlyMap<string, PinnedAction>, SqlError.SqlError, HotSql> {
  if (pins.length === 0) return new Map()
  const hot = yield* HotSql
  const rows = yield* hot<PinnedRow>`
    select a.id, a.name, a.provider_key, a.action_key, v.version as revision, v.schema_version, v.inputs, v.content_hash, a.updated_at
    from unnest(${pins.map(({ id }) => id)}::text[], ${pins.map(({ revision }) => revision)}::int4[]) as pin (id, revision)
      join action_versions v on v.action_id = pin.id and v.version = pin.revision
      join actions a on a.id = v.action_id
    where v.team_id = ${team_id}`
  return new Map(rows.map((row) => [row.id, pinnedOf(row)]))
})
