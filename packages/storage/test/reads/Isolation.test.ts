import { expect, layer } from "@effect/vitest"
import { globSync } from "node:fs"
import { basename, join } from "node:path"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { resources } from "@tidegate/resources/Resources"
import * as AttemptReads from "../../src/reads/AttemptReads.ts"
import * as AlertReads from "../../src/reads/AlertReads.ts"
import * as BinReads from "../../src/reads/BinReads.ts"
import * as CapturedReads from "../../src/reads/CapturedReads.ts"
import * as ChannelReads from "../../src/channels/ChannelReads.ts"
import { feedCursor } from "../../src/reads/EventFeed.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as ExecutionReads from "../../src/reads/ExecutionReads.ts"
import * as IssueReads from "../../src/reads/IssueReads.ts"
import * as IgnoredEventReads from "../../src/reads/IgnoredEventReads.ts"
import * as MetricsReads from "../../src/reads/MetricsReads.ts"
import * as NamedReads from "../../src/reads/NamedReads.ts"
import * as ProxyExchangeReads from "../../src/reads/ProxyExchangeReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import * as RunReads from "../../src/reads/RunReads.ts"
import * as SummaryReads from "../../src/reads/SummaryReads.ts"
import * as TraceReads from "../../src/reads/TraceReads.ts"
import { Actions } from "../../src/workflows/Actions.ts"
import { Connections } from "../../src/control/Connections.ts"
import { Destinations } from "../../src/control/Destinations.ts"
import { Sources } from "../../src/control/Sources.ts"
import { type Table, tables } from "../../src/Tables.ts"
import { Filters } from "../../src/control/Filters.ts"
import { Transformations } from "../../src/control/Transformations.ts"
import * as VersionReads from "../../src/reads/VersionReads.ts"
import { Workflows } from "../../src/workflows/Workflows.ts"
import * as ControlPlane from "../controlPlane.ts"
import { idOf, makeOldDays, makeRoutingJob, makeWaiting, type OldDays, resourcesOf } from "../OldDays.ts"
import { anyAttempt, anyEvent, anyRequest } from "./Filters.ts"
import { listing } from "../listing.ts"

/*
 * Two teams with the same history. Whatever one of them reads, by no id, by its own or by the other's, shows nothing that
 * belongs to the other. A function of the reads that is not called here fails the test, and so does a table of teams
 * without rows of both.
 */

const mine = "tm_mine"
const other = "tm_other"

const old: OldDays = {
  now: Date.now(),
  days: 0,
  teams: { [mine]: { payload: null, record: null }, [other]: { payload: null, record: null } },
  perDay: 40,
  bodyBytes: 64
}

/** A provider source of the team. */
const itemSourceOf = (team: string): string => `src_${idOf(old, team, 0, 7)}`

const provider = JSON.stringify({
  provider_key: "websub",
  definition_key: "entry.added",
  provider_account_id: null,
  inputs: { url: "https://blog.test/feed" },
  schedule: { interval_minutes: 5 },
  auto_fallback: true,
  max_failures: 3,
  restore_after_minutes: 30
})

/** A row in each table of channels and accounts. */
const makeChannel = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const [items, later] = [itemSourceOf(team), new Date(old.now + 86_400_000)]
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    select ${items}, team_id, 'items', 'PROVIDER', jsonb_set(config::jsonb, '{provider}', ${provider}::jsonb)::json, now(), now()
    from sources where id = ${resourcesOf(team).source}`
  yield* sql`insert into channels (source_id, team_id, created_at, updated_at) values (${items}, ${team}, now(), now())`
  yield* sql`insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, target, token_hash, secrets, state, created_at)
    values (${`chn_${items}`}, ${team}, ${items}, 'websub', 'entry.added', ${team}, ${team}, '', 'active', now())`
  yield* sql`insert into channel_items (source_id, key, team_id, request_id, mode, received_at, expires_at)
    values (${items}, '', ${team}, 'req', 'polling', now(), ${later})`
  yield* sql`insert into channel_events (id, team_id, source_id, kind, severity, message, created_at, expires_at)
    values (${`cev_${items}`}, ${team}, ${items}, 'stopped', 'info', '', now(), ${later})`
  yield* sql`insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at)
    values (${`cal_${items}`}, ${team}, ${items}, 'channel_stop_failed', 'active', '', 1, now(), now())`
  yield* sql`insert into channel_alert_deliveries (id, team_id, source_id, alert_id, code, kind, transport, recipient, status, created_at, expires_at)
    values (${`cad_${items}`}, ${team}, ${items}, 'cal', 'channel_stop_failed', 'opened', 'email', '', 'sent', now(), ${later})`
  yield* sql`insert into channel_settings (team_id, email_enabled, email_recipients, chat_enabled, cooldown_minutes, silence_alert_hours,
      silence_alert_enabled, updated_at)
    values (${team}, true, '{}', false, 60, 24, true, now())`
  yield* sql`insert into channel_metrics values (${team}, ${items}, current_date, ${team}, 1, ${later})`
  yield* sql`insert into source_runs (id, team_id, source_id, status, reason, scheduled_at, expires_at)
    values (${`trun_${items}`}, ${team}, ${items}, 'failed', 'schedule', now(), ${later})`
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, created_at, updated_at)
    values (${`pac_${items}`}, ${team}, 'watch', 'a', 'oauth2', 'https://api.test', now(), now())`
  yield* sql`insert into provider_consents (state_hash, team_id, account_id, begun_by, expires_at)
    values (${team}, ${team}, 'pac', '', ${later})`
})

const issueOf = (team: string): string => `iss_${idOf(old, team, 0, 3)}`

const workflowOf = (team: string): string => `wfl_${idOf(old, team, 0, 1)}`

const world = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* makeOldDays(old)
    for (const team of [mine, other]) {
      yield* makeChannel(team)
      yield* makeWaiting(old, team, 0, 4)
      yield* makeRoutingJob(old, team, 0, 5)
      const { connection, destination, source } = resourcesOf(team)
      yield* sql`insert into destination_tokens (destination_id, team_id) values (${destination}, ${team})`
      yield* sql`insert into dedupe_keys (connection_id, team_id, key, request_id, expires_at)
        values (${connection}, ${team}, 'key', 'req', now())`
      yield* sql`insert into request_shares (id, team_id, request_id, token_hash, expires_at, forgotten_at, created_at, updated_at)
        values (${`shr_${team}`}, ${team}, 'req', ${team}, now(), now(), now(), now())`
      yield* sql`insert into request_fixtures (id, team_id, name, source_id, original_request_id, method, path, query, headers,
          body, verified, created_at, updated_at)
        values (${`fix_${team}`}, ${team}, 'f', ${source}, 'req', 'POST', '/', '', '{}', '', false, now(), now())`
      yield* sql`insert into bulk_operations (id, team_id, type, filter, shard, created_at)
        values (${`bch_${team}`}, ${team}, 'event_bulk_retry', '{}', 1, now())`
      yield* sql`insert into bulk_targets (operation_id, target_id, team_id) values (${`bch_${team}`}, 'evt', ${team})`
      yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
        values (${connection}, 'created', now(), 1, ${team}, 1)`
      yield* sql`insert into occurrences (team_id, kind, subject_id, code, count, first_at, last_at)
        values (${team}, 'delivery', ${destination}, 'TIMEOUT', 1, now(), now())`
      yield* sql`insert into issues (id, team_id, destination_id, error_code, status, count, event_ids, first_seen_at, last_seen_at,
          opened_at, expires_at)
        values (${issueOf(team)}, ${team}, ${destination}, 'TIMEOUT', 'open', 1, '{}', now(), now(), now(), now())`
      yield* sql`insert into system_notices (team_id, type, subject_id, facts, expires_at)
        values (${team}, 'event.failed', ${destination}, '{}', now())`
      yield* sql`insert into rollup_batches (team_id, key_ids, measures, minutes, counts)
        values (${team}, array[${connection}], array['created'], array[now()], array[1])`
      yield* sql`insert into source_periods (source_id, team_id, started_at, ends_at, leased, revision)
        values (${source}, ${team}, now(), now(), 1, 1)`
      yield* sql`insert into public_bins (source_id, team_id, token_hash, minute, expires_at, created_at)
        values (${source}, ${team}, ${team}, now(), now(), now())`
      yield* sql`insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
        values (${team}, ${team}, '', '', '')`
      yield* sql`insert into users (id, issuer, subject, created_at, updated_at) values (${team}, '', ${team}, now(), now())`
      yield* sql`insert into memberships (team_id, user_id, role, created_at) values (${team}, ${team}, 'owner', now())`
      yield* sql`insert into sessions (token_hash, user_id, team_id, created_at, expires_at)
        values (${team}, ${team}, ${team}, now(), now() + interval '1 day')`
      const [workflow, run] = [workflowOf(team), `wfr_${idOf(old, team, 0, 6)}`]
      yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at)
        values (${workflow}, ${team}, 'flow', ${source}, 'active', 1, '[]', '[]', '', now(), now())`
      yield* sql`insert into workflow_versions (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, created_at)
        values (${workflow}, 1, ${team}, 'flow', 'active', '', 1, '[]', '[]', now())`
      yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
        values (${run}, ${team}, ${workflow}, ${`req_${idOf(old, team, 0, 6)}`}, ${source}, 1, 'queued', 0, now(), now())`
      yield* sql`insert into workflow_steps (id, team_id, run_id, part, steps, created_at)
        values (${`wsp_${idOf(old, team, 0, 6)}`}, ${team}, ${run}, 1, '{}', now())`
      yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
        values (${run}, ${team}, 1, ${workflow}, now())`
      yield* sql`insert into workflow_turns (run_id, team_id, workflow_id, key, created_at)
        values (${run}, ${team}, ${workflow}, '', now())`
      yield* sql`insert into workflow_windows (workflow_id, key, team_id, run_id, run_at, opened_at, due_at, expires_at)
        values (${workflow}, '', ${team}, ${run}, now(), now(), now(), now() + interval '1 day')`
      yield* sql`insert into workflow_drafts (workflow_id, team_id, based_on_version, steps, edges, created_at, updated_at)
        values (${workflow}, ${team}, 1, '[]', '[]', now(), now())`
      yield* sql`insert into workflow_schedules (workflow_id, team_id, cron, timezone, missed, active)
        values (${workflow}, ${team}, '0 9 * * *', 'UTC', 'once', true)`
      yield* sql`insert into workflow_keys (workflow_id, key, team_id, run_id, expires_at)
        values (${workflow}, 'k', ${team}, ${run}, now() + interval '1 day')`
      yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
        values (${workflow}, 'run', now(), 1, ${team}, 1)`
      yield* sql`insert into team_values (team_id, key, value, updated_at) values (${team}, 'k', '1', now())`
      yield* sql`insert into workflow_values (workflow_id, team_id, key, value, updated_at)
        values (${workflow}, ${team}, 'k', '1', now())`
      yield* sql`insert into workflow_waits (run_id, step_id, workflow_id, team_id, source_id, since, expires_at)
        values (${run}, 'wait', ${workflow}, ${team}, ${source}, now(), now() + interval '1 day')`
      yield* sql`insert into workflow_awaited (source_id, workflow_id, team_id, used_at, expires_at)
        values (${source}, ${workflow}, ${team}, now(), now() + interval '1 day')`
      yield* sql`insert into workflow_children (parent_run_id, step_id, began_at, child_run_id, root_run_id, depth, team_id, workflow_id,
          shard, child_workflow_id, child_shard, expires_at)
        values (${run}, 'call', now(), ${`wfr_child_${team}`}, ${run}, 1, ${team}, ${workflow}, 1, ${workflow}, 1, now() + interval '1 day')`
      yield* sql`insert into workflow_arrivals (workflow_id, about, team_id, shard, due_at, expires_at)
        values (${workflow}, 'req_1', ${team}, 1, now(), now() + interval '1 day')`
      yield* sql`insert into work_in_hand (kind, id, team_id, process, expires_at)
        values ('run', ${`wfr_${team}`}, ${team}, '', now() + interval '1 day')`
      yield* sql`insert into workflow_inputs (run_id, team_id, method, path, query, headers, body, body_size, ingested_at, expires_at)
        values (${run}, ${team}, 'POST', '/', '', '{}', '', 0, now(), now() + interval '1 day')`
      yield* sql`insert into action_holds (team_id, target, held_until)
        values (${team}, ${resourcesOf(team).action}, now() + interval '1 hour')`
      yield* sql`insert into idempotency_keys (id, team_id, fingerprint, hand, begun_at, held_until, expires_at)
        values (${`idk_${team}`}, ${team}, '', '', now(), now(), now() + interval '1 day')`
      yield* sql`insert into step_results (key, team_id, result, expires_at) values (${team}, ${team}, '1', now())`
      const { transformation } = resourcesOf(team)
      yield* sql`insert into transformation_versions (transformation_id, code_hash, team_id, code, superseded_at)
        values (${transformation}, '', ${team}, '', now())`
      yield* sql`insert into project_api_keys (id, team_id, name, legacy, scopes, created_at, updated_at)
        values (${`pak_${team}`}, ${team}, 'k', true, '{}', now(), now())`
      yield* sql`insert into key_audit (entry, team_id, key_id, began_at, route_key, permission, decision, count, first_seen_at, last_seen_at, expires_at)
        values (gen_random_uuid(), ${team}, ${`pak_${team}`}, now(), 'UNKNOWN', 'read', 'allowed', 1, now(), now(), now())`
    }
  })
).pipe(
  Layer.provideMerge(Layer.mergeAll(Actions.layer, Filters.layer, Transformations.layer, Workflows.layer)),
  Layer.provideMerge(ControlPlane.layer),
  Layer.orDie
)

type Read = Effect.Effect<unknown, unknown, Layer.Success<typeof world>>
/** A read of `mine` by the ids of a team; `null`: by none. */
type Case = (ids: Ids | null) => Read

interface Ids {
  readonly source: string
  readonly destination: string
  readonly connection: string
  readonly transformation: string
  readonly filter: string
  readonly action: string
  readonly workflow: string
  readonly items: string
  /** Of the records of the n-th request. */
  readonly record: (prefix: keyof typeof prefixes, n: number) => string
}

const idsOf = (team: string): Ids => ({
  ...resourcesOf(team),
  workflow: workflowOf(team),
  items: itemSourceOf(team),
  record: (prefix, n) => sibling(prefixes[prefix], `req_${idOf(old, team, 0, n)}`)
})

const some = <A>(value: A | undefined): ReadonlyArray<A> => (value === undefined ? [] : [value])
const page = { key: "test", window: { from: "now-2d", to: "2999-01-01" }, cursor: undefined, limit: 100 }
const sub = { key: "test", cursor: undefined, limit: 100 }
const events = (ids: Ids | null): EventReads.EventFilter => ({
  ...anyEvent,
  requests: [],
  sources: some(ids?.source),
  connections: some(ids?.connection),
  destinations: some(ids?.destination)
})
const requests = (ids: Ids | null): RequestReads.RequestFilter => ({
  ...anyRequest,
  sources: some(ids?.source),
  connections: some(ids?.connection)
})
const ignored = (ids: Ids | null) => ({
  causes: [],
  requests: [],
  sources: some(ids?.source),
  connections: some(ids?.connection)
})
const anything = { ids: [], statuses: [], sources: [], connections: [], destinations: [] }
const whole = { data: true, eventSummary: true }
const req = (ids: Ids | null, n: number) => (ids ?? idsOf(mine)).record("request", n)

const series = <Measure extends string>(measures: ReadonlyArray<Measure>) => ({
  window: { from: "now-1d", to: "now" },
  granularity: "1h" as const,
  measures
})

/** What summaries tell: the ids in them are those that were asked for. */
const told = <E, R>(rows: Effect.Effect<ReadonlyArray<object>, E, R>) =>
  Effect.map(rows, (all) =>
    all.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => /count|bins/.test(name))))
  )

/** By module and function. */
const cases: Readonly<Record<string, Case>> = {
  "EventReads.list": (ids) => EventReads.list(mine, events(ids), page, { data: true }),
  "EventReads.list by status": () =>
    EventReads.list(mine, { ...events(null), statuses: ["QUEUED", "FAILED"] }, page, { data: true }),
  "EventReads.list by request": (ids) =>
    EventReads.list(mine, { ...events(null), requests: [req(ids, 6)] }, page, { data: true }),
  "EventReads.list by search": (ids) =>
    EventReads.list(mine, { ...events(null), search: `ext-${req(ids, 6).slice(4)}` }, page, { data: true }),
  "EventReads.feed": (ids) => {
    const after = feedCursor("feed", { txid: "0", entry: "", taken: 0, at: Date.now() })
    return EventReads.feed(mine, events(ids), { key: "feed", after, limit: 100 }, { data: true })
  },
  "EventReads.count": (ids) => EventReads.count(mine, events(ids), page.window),
  "EventReads.byIds": (ids) => EventReads.byIds(mine, some(ids?.record("event", 6)), [], 10),
  "EventReads.get": (ids) => EventReads.get(mine, (ids ?? idsOf(mine)).record("event", 0)),
  "EventReads.ofRequest": (ids) => EventReads.ofRequest(mine, req(ids, 6), anything, sub),
  "RequestReads.list": (ids) => RequestReads.list(mine, requests(ids), page, whole),
  "RequestReads.list by search": (ids) =>
    RequestReads.list(mine, { ...requests(null), search: `ext-${req(ids, 6).slice(4)}` }, page, whole),
  "RequestReads.count": (ids) => RequestReads.count(mine, requests(ids), page.window),
  "RequestReads.check": (ids) => RequestReads.check(mine, req(ids, 6)),
  "RequestReads.detail": (ids) => RequestReads.detail(mine, req(ids, 2)),
  "RequestReads.latestInput": (ids) => RequestReads.latestInput(mine, (ids ?? idsOf(mine)).source),
  "RequestReads.requestBody": (ids) => RequestReads.requestBody(mine, req(ids, 6)),
  "RequestReads.requestBodySize": (ids) => RequestReads.requestBodySize(mine, req(ids, 6)),
  "AttemptReads.list": (ids) =>
    AttemptReads.list(mine, { ...anyAttempt, destinations: some(ids?.destination) }, "desc", page),
  "AttemptReads.list by event": (ids) =>
    AttemptReads.list(mine, { ...anyAttempt, events: some(ids?.record("event", 6)) }, "asc", page),
  "AttemptReads.get": (ids) => AttemptReads.get(mine, (ids ?? idsOf(mine)).record("attempt", 6), req(ids, 6)),
  "AttemptReads.byEvents": (ids) => AttemptReads.byEvents(mine, some(ids?.record("event", 6)), 10),
  "IgnoredEventReads.ofRequest": (ids) =>
    IgnoredEventReads.ofRequest(mine, req(ids, 1), { ids: [], connections: some(ids?.connection) }, sub),
  "IgnoredEventReads.list": (ids) => IgnoredEventReads.list(mine, ignored(ids), page),
  "IgnoredEventReads.count": (ids) => IgnoredEventReads.count(mine, ignored(ids), page.window),
  "ExecutionReads.list": (ids) =>
    ExecutionReads.list(mine, (ids ?? idsOf(mine)).transformation, { logLevels: [] }, page),
  "ExecutionReads.get": (ids) => {
    const { record, transformation } = ids ?? idsOf(mine)
    return ExecutionReads.get(mine, transformation, record("execution", 0))
  },
  "ExecutionReads.ofRequest": (ids) => ExecutionReads.ofRequest(mine, req(ids, 0), 10),
  "MetricsReads.events": (ids) =>
    MetricsReads.events(mine, events(ids), series(["count", "delivered_count", "ignored_count"])),
  "MetricsReads.requests": (ids) => MetricsReads.requests(mine, requests(ids), series(["count"])),
  "SummaryReads.sources": (ids) => told(SummaryReads.sources(mine, [(ids ?? idsOf(mine)).source])),
  "SummaryReads.rates": (ids) =>
    told(Effect.map(SummaryReads.rates(mine, [(ids ?? idsOf(mine)).source]), ({ models }) => models)),
  "SummaryReads.destinations": (ids) => told(SummaryReads.destinations(mine, [(ids ?? idsOf(mine)).destination])),
  "SummaryReads.connections": (ids) => told(SummaryReads.connections(mine, [(ids ?? idsOf(mine)).connection])),
  "SummaryReads.transformations": (ids) =>
    told(SummaryReads.transformations(mine, [(ids ?? idsOf(mine)).transformation])),
  "BinReads.binRequests": (ids) =>
    BinReads.binRequests({ id: (ids ?? idsOf(mine)).source, team_id: mine, expires_at: new Date(old.now) }, sub),
  "CapturedReads.captured": (ids) => CapturedReads.captured(mine, [req(ids, 6)]),
  "CapturedReads.newestRequests": (ids) =>
    CapturedReads.newestRequests([{ source: (ids ?? idsOf(mine)).source, team: mine }], old.now - 86_400_000, 100),
  "AlertReads.listAlerts": () => AlertReads.listAlerts(mine, "all", sub),
  "AlertReads.alertOf": (ids) =>
    AlertReads.alertOf(mine, `cal_${itemSourceOf(ids?.destination === resourcesOf(other).destination ? other : mine)}`),
  "IssueReads.listIssues": (ids) =>
    IssueReads.listIssues(mine, { statuses: [], destinations: some(ids?.destination) }, sub),
  "IssueReads.issueOf": (ids) =>
    IssueReads.issueOf(mine, issueOf(ids?.destination === resourcesOf(other).destination ? other : mine)),
  "ChannelReads.listChannels": () => ChannelReads.listChannels(mine, []),
  "ChannelReads.channelHistory": (ids) => ChannelReads.channelHistory(mine, (ids ?? idsOf(mine)).items, 10),
  "ChannelReads.channelMetrics": () => ChannelReads.channelMetrics(mine, 2),
  "ChannelReads.sourceRuns": (ids) => ChannelReads.sourceRuns(mine, (ids ?? idsOf(mine)).items, "all", sub),
  "ProxyExchangeReads.ofRequest": (ids) => ProxyExchangeReads.ofRequest(mine, req(ids, 2)),
  "TraceReads.get": (ids) => TraceReads.get(mine, req(ids, 0)),
  "Store.list of sources": (ids) => Effect.flatMap(Sources, ({ list }) => list(mine, listing(some(ids?.source)))),
  "Store.list of destinations": (ids) =>
    Effect.flatMap(Destinations, ({ list }) => list(mine, listing(some(ids?.destination)))),
  "Store.list of connections": (ids) =>
    Effect.flatMap(Connections, ({ list }) =>
      list(mine, { ...listing(some(ids?.connection)), among: { source_id: some(ids?.source) } })
    ),
  "Store.list of transformations": (ids) =>
    Effect.flatMap(Transformations, ({ list }) => list(mine, listing(some(ids?.transformation)))),
  "Store.get of a source": (ids) => Effect.flatMap(Sources, ({ get }) => get(mine, (ids ?? idsOf(mine)).source)),
  "Store.get of a destination": (ids) =>
    Effect.flatMap(Destinations, ({ get }) => get(mine, (ids ?? idsOf(mine)).destination)),
  "Store.get of a connection": (ids) =>
    Effect.flatMap(Connections, ({ get }) => get(mine, (ids ?? idsOf(mine)).connection)),
  "Store.list of filters": (ids) => Effect.flatMap(Filters, ({ list }) => list(mine, listing(some(ids?.filter)))),
  "Store.get of a filter": (ids) => Effect.flatMap(Filters, ({ get }) => get(mine, (ids ?? idsOf(mine)).filter)),
  "Store.list of actions": (ids) => Effect.flatMap(Actions, ({ list }) => list(mine, listing(some(ids?.action)))),
  "Store.get of a action": (ids) => Effect.flatMap(Actions, ({ get }) => get(mine, (ids ?? idsOf(mine)).action)),
  "Store.list of workflows": (ids) => Effect.flatMap(Workflows, ({ list }) => list(mine, listing(some(ids?.workflow)))),
  "Store.get of a workflow": (ids) => Effect.flatMap(Workflows, ({ get }) => get(mine, (ids ?? idsOf(mine)).workflow)),
  "RunReads.workflowOf": (ids) => RunReads.workflowOf(mine, (ids ?? idsOf(mine)).workflow),
  "RunReads.list": (ids) => RunReads.list(mine, (ids ?? idsOf(mine)).workflow, [], page),
  "RunReads.one": (ids) => RunReads.one(mine, (ids ?? idsOf(mine)).workflow, req(ids, 6).replace(/^req_/, "wfr_")),
  "RunReads.byId": (ids) => RunReads.byId(mine, req(ids, 6).replace(/^req_/, "wfr_")),
  "RunReads.ofRequest": (ids) => RunReads.ofRequest(mine, req(ids, 6), 100),
  "RunReads.activity": (ids) =>
    RunReads.activity(mine, { search: undefined, sources: some(ids?.source), statuses: [] }, page),
  "RunReads.idsOf": (ids) =>
    RunReads.idsOf(mine, { search: undefined, sources: [], workflows: some(ids?.workflow), statuses: [] }, page),
  "VersionReads.list": (ids) => VersionReads.list(mine, (ids ?? idsOf(mine)).workflow, sub),
  "VersionReads.get": (ids) => VersionReads.get(mine, (ids ?? idsOf(mine)).workflow, 1),
  "VersionReads.definitionOf": (ids) => VersionReads.definitionOf(mine, (ids ?? idsOf(mine)).workflow, 1),
  "VersionReads.comparison": (ids) => VersionReads.comparison(mine, (ids ?? idsOf(mine)).workflow, 1, null),
  "SummaryReads.workflows": (ids) => told(SummaryReads.workflows(mine, [(ids ?? idsOf(mine)).workflow])),
  "NamedReads.named": () => NamedReads.named(mine, "sources", { query: "", behind: null, limit: 100 }),
  "Store.get of a transformation": (ids) =>
    Effect.flatMap(Transformations, ({ get }) => get(mine, (ids ?? idsOf(mine)).transformation))
}

/** What a read answers as text; an error that says that there is nothing is nothing. */
const shown = (read: Read) =>
  Effect.map(
    Effect.catchIf(
      read,
      (error) => error instanceof GatewayError && error.code === "NOT_FOUND",
      () => Effect.succeed(null)
    ),
    (answer) =>
      JSON.stringify(answer ?? null, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))
  )

layer(world, { excludeTestServices: true })("Reads of a team", (it) => {
  it.effect("This suite calls all read functions", () =>
    Effect.gen(function* () {
      const folder = join(import.meta.dirname, "../../src")
      const files = globSync("{reads,channels}/*Reads.ts", { cwd: folder })
      const functions: Array<string> = []
      for (const file of files) {
        const module = yield* Effect.promise(() => import(join(folder, file)) as Promise<Record<string, unknown>>)
        functions.push(...Object.keys(module).map((name) => `${basename(file, ".ts")}.${name}`))
      }
      functions.push("Store.get", "Store.list")
      expect([...new Set(Object.keys(cases).map((name) => name.split(" ")[0]!))].sort()).toEqual(functions.sort())
      for (const { name, plural } of resources) {
        expect(Object.keys(cases)).toEqual(
          expect.arrayContaining([`Store.list of ${plural}`, `Store.get of a ${name}`])
        )
      }
    })
  )

  it.effect("All tables of teams hold rows of both teams and none without a team", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const without: Array<string> = []
      for (const [name, { team }] of Object.entries<Table>(tables)) {
        if (team === null) continue
        const rows = yield* sql.unsafe<{ team: string | null }>(`select distinct ${team} as team from ${name}`)
        const found = new Set(rows.map((row) => row.team))
        if (!found.has(mine) || !found.has(other) || found.has(null)) without.push(name)
      }
      expect(without).toEqual([])
    })
  )

  for (const [name, read] of Object.entries(cases)) {
    it.effect(`A read shows nothing of another team: ${name}`, () =>
      Effect.gen(function* () {
        const others = [
          other,
          itemSourceOf(other),
          ...Object.values(resourcesOf(other)),
          idOf(old, other, 0, 0).slice(10, 16)
        ]
        // By its own ids it shows something, so that the rest means something.
        expect(["null", "[]", "0"]).not.toContain(
          yield* shown(read(name.endsWith("check") ? null : idsOf(mine))).pipe(
            Effect.map((text) => (name.endsWith("check") ? "checked" : text))
          )
        )
        for (const ids of [null, idsOf(mine), idsOf(other)]) {
          const text = yield* shown(read(ids))
          expect(others.filter((id) => text.includes(id))).toEqual([])
        }
        if (name.endsWith("count")) expect(JSON.parse(yield* shown(read(idsOf(other))))).toMatchObject({ total: 0 })
        if (name.startsWith("SummaryReads") || name.startsWith("MetricsReads")) {
          const text = (yield* shown(read(idsOf(other)))).replace(
            /"date_range":\{[^}]*\}|"timestamp":"[^"]*"|"\w+":/g,
            ""
          )
          expect(text.replace(/"1h"/g, "")).not.toMatch(/[1-9]/)
        }
        if (name.endsWith("check")) expect((yield* Effect.exit(read(idsOf(other))))._tag).toBe("Failure")
        if (name.startsWith("RequestReads.requestBody")) expect(yield* shown(read(idsOf(other)))).toBe("null")
      })
    )
  }
})
