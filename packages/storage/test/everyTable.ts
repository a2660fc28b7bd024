import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Actions } from "../src/workflows/Actions.ts"
import { Filters } from "../src/control/Filters.ts"
import { Transformations } from "../src/control/Transformations.ts"
import { Workflows } from "../src/workflows/Workflows.ts"
import * as ControlPlane from "./controlPlane.ts"
import { idOf, makeOldDays, makeRoutingJob, makeWaiting, type OldDays, resourcesOf } from "./OldDays.ts"

/*
 * Two teams with the same history, and rows of both in every table that has rows of teams. A test of the isolation of reads fails when a
 * table has none.
 */

export const mine = "tm_mine"
export const other = "tm_other"

// The history is that of yesterday: that of today begins at one o'clock, and would still be to come at midnight.
export const old: OldDays = {
  now: Date.now() - 86_400_000,
  days: 0,
  teams: { [mine]: { payload: null, record: null }, [other]: { payload: null, record: null } },
  perDay: 40,
  bodyBytes: 64
}

/** A provider source of the team. */
export const itemSourceOf = (team: string): string => `src_${idOf(old, team, 0, 7)}`

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
  yield* sql`insert into source_messages (source_id, key, team_id, request_id, expires_at) values (${items}, '', ${team}, 'req', ${later})`
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

export const issueOf = (team: string): string => `iss_${idOf(old, team, 0, 3)}`

export const dataDeletionOf = (team: string): string => `del_${idOf(old, team, 0, 2)}`

export const workflowOf = (team: string): string => `wfl_${idOf(old, team, 0, 1)}`

export const world = Layer.effectDiscard(
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
      yield* sql`insert into data_deletions (id, team_id, filter, until, stage, requested_at, finished_at)
        values (${dataDeletionOf(team)}, ${team}, '{}', now(), 'done', now(), now())`
      yield* sql`insert into data_deletion_targets (deletion_id, target_id, team_id)
        values (${dataDeletionOf(team)}, 'req', ${team})`
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
      yield* sql`insert into workflow_batched (run_id, member_id, team_id, request_id, created_at, expires_at)
        values (${run}, ${run}, ${team}, ${run}, now(), now() + interval '1 day')`
      yield* sql`insert into workflow_drafts (workflow_id, team_id, based_on_version, steps, edges, created_at, updated_at)
        values (${workflow}, ${team}, 1, '[]', '[]', now(), now())`
      yield* sql`insert into workflow_templates (id, team_id, name, description, outline, steps, edges, bytes, created_at)
        values (${`wft_${workflow}`}, ${team}, 't', '', '[]', '[]', '[]', 1, now())`
      yield* sql`insert into workflow_schedules (workflow_id, team_id, cron, timezone, missed, active)
        values (${workflow}, ${team}, '0 9 * * *', 'UTC', 'once', true)`
      yield* sql`insert into source_schedules (source_id, team_id) values (${resourcesOf(team).source}, ${team})`
      yield* sql`insert into source_subscriptions (source_id, team_id, status) values (${resourcesOf(team).source}, ${team}, 'disabled')`
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
