import { Effect, type Result, type Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { isSlug } from "@tidegate/model/Ingress"
import type { Ordering } from "@tidegate/model/Ordering"
import type { WorkflowAnswer } from "@tidegate/model/WorkflowTriggers"
import type { Rule } from "@tidegate/model/Rule"
import { systemType } from "@tidegate/model/SystemSource"
import type { SourceConfig } from "@tidegate/resources/Source"
import { readAuth } from "../secrets/AuthColumn.ts"
import { HotSql } from "../Database.ts"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import { configOf, type StoredConfig } from "../control/Sources.ts"
import { binsTeam } from "../teams/Teams.ts"

interface Settings {
  readonly id: string
  readonly team_id: string
  readonly slug: string | null
  readonly type: string
  readonly config: SourceConfig
  /** Its enabled connections to enabled destinations. */
  readonly connections: ReadonlyArray<{
    readonly id: string
    readonly destination_id: string
    readonly destination_type: string
    /** Null: the connections before it already have as many rules as are read at once. */
    readonly rules: ReadonlyArray<Rule> | null
    readonly ordering: Ordering | null
    /**
     * Ordering positions were assigned to routing jobs of earlier requests: later requests must not overtake them, whatever the
     * rules are by now.
     */
    readonly follows: boolean
  }>
  /** The workflows of which each accepted request starts a run; runs of paused workflows wait. */
  readonly workflows: ReadonlyArray<{
    readonly id: string
    readonly version: number
    readonly steps: number
    /** For an active workflow that answers senders. */
    readonly answer: WorkflowAnswer | null
  }>
  /** The workflows with steps that wait for a request of the source. */
  readonly awaiting: ReadonlyArray<string>
}

/** A source with the settings for routing, all of one moment. */
export interface RoutedSource extends Settings {
  readonly version: number
  readonly disabled: boolean
  /** When it expires, if it is an unclaimed bin; null: it is none. */
  readonly binExpiresAt: number | null
  /** The settings for verification; a failure if they cannot be decrypted. The caller must fail closed then. */
  readonly auth: Result.Result<Schema.JsonObject, SecretUnreadable | Schema.SchemaError>
}

interface Row extends Omit<Settings, "config"> {
  readonly config: StoredConfig
  readonly version: bigint
  readonly disabled_at: Date | null
  readonly bin_expires_at: Date | null
  /** Encrypted. */
  readonly auth: string | null
}

/** The largest size of the rules of all connections that are read with a source, in bytes of JSON. */
const maxRuleBytes = 4 * 1024 * 1024

/** The same as stored, compressed, in bytes. Up to this size they have at most some hundred kilobytes when they are read. */
const lightSettings = 2_000
const lightRules = 16_000

const named = (sql: SqlClient.SqlClient, name: string) => (isSlug(name) ? sql`s.slug = ${name}` : sql`s.id = ${name}`)

/**
 * The cost of reading the source with this id or slug, determined without reading it; null: there is none that takes requests. A provider source
 * accepts no requests, because it receives items of its provider. A system source accepts none, because its requests are the gateway's own events;
 * those of a source of type CRON are made by its schedule, and those of a source of a broker are its messages.
 */
export const weighRoutedSource = Effect.fnUntraced(function* (
  name: string
): Effect.fn.Return<{ readonly team_id: string; readonly isLight: boolean } | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ team_id: string; isLight: boolean }>`
    select s.team_id, pg_column_size(s.config) + coalesce(pg_column_size(s.auth), 0) <= ${lightSettings} and coalesce((
        select sum(pg_column_size(c.rules)) from connections c
        where c.source_id = s.id and c.deleted_at is null and c.disabled_at is null
      ), 0) <= ${lightRules} as "isLight"
    from sources s where ${named(sql, name)} and s.deleted_at is null and s.config -> 'provider' is null
      and s.config -> 'schedule' is null and s.config -> 'subscription' is null and s.type <> ${systemType}`
  return row ?? null
})

/** The source with this id or slug; null: there is none. */
export const readRoutedSource = Effect.fnUntraced(function* (
  name: string
): Effect.fn.Return<RoutedSource | null, SqlError.SqlError, HotSql | Secrets> {
  const sql = yield* HotSql
  const secrets = yield* Secrets
  const [row] = yield* sql<Row>`
    select s.id, s.team_id, s.slug, s.version, s.disabled_at, s.type, s.config, s.auth,
      case when s.team_id = ${binsTeam} then (select b.expires_at from public_bins b where b.source_id = s.id) end as bin_expires_at,
      coalesce((
      select json_agg(json_build_object('id', c.id, 'destination_id', c.destination_id,
        'destination_type', (select d.type from destinations d where d.id = c.destination_id),
        'rules', case when c.bytes <= ${maxRuleBytes} then c.rules end,
        'ordering', c.ordering, 'follows', c.ordering is not null and c.lines = 'actor') order by c.id)
      from (
        select c.*, sum(octet_length(c.rules::text)) over (order by c.id) as bytes from connections c
        where c.source_id = s.id and c.deleted_at is null and c.disabled_at is null
          and (select d.deleted_at is null and d.disabled_at is null from destinations d where d.id = c.destination_id)
      ) c
    ), '[]') as connections,
      coalesce((
      select json_agg(json_build_object('id', w.id, 'version', w.version, 'steps', jsonb_array_length(w.steps),
        'answer', case when w.status = 'active' then w.triggers -> 'answer' end) order by w.id)
      from workflows w where w.source_id = s.id and w.deleted_at is null and w.status in ('active', 'paused')
    ), '[]') as workflows,
      array(select a.workflow_id from workflow_awaited a where a.source_id = s.id and a.team_id = s.team_id order by 1) as awaiting
    from sources s where ${named(sql, name)} and s.deleted_at is null`
  if (row === undefined) return null
  const { awaiting, bin_expires_at, config, connections, disabled_at, id, slug, team_id, type, version, workflows } =
    row
  const auth = yield* Effect.result(readAuth(secrets, "sources", row))
  return {
    id,
    team_id,
    slug,
    type,
    config: configOf(config),
    connections,
    workflows,
    awaiting,
    version: Number(version),
    disabled: disabled_at !== null,
    binExpiresAt: bin_expires_at?.getTime() ?? null,
    auth
  }
})
