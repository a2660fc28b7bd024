import { Clock, Effect } from "effect"
import { Migrator, SqlClient, SqlError } from "effect/sql"
import initial from "./migrations/0001_initial.ts"
import frontDoors from "./migrations/0002_front_doors.ts"
import presented from "./migrations/0003_presented.ts"
import sourceSlugs from "./migrations/0004_source_slugs.ts"
import retention from "./migrations/0005_retention.ts"
import commands from "./migrations/0006_commands.ts"
import recentCommands from "./migrations/0007_recent_commands.ts"
import isolation from "./migrations/0008_isolation.ts"
import rollupBatches from "./migrations/0009_rollup_batches.ts"
import sourcePeriods from "./migrations/0010_source_periods.ts"
import ordering from "./migrations/0011_ordering.ts"
import countedRoutes from "./migrations/0012_counted_routes.ts"
import people from "./migrations/0013_people.ts"
import bulkOperations from "./migrations/0014_bulk_operations.ts"
import counts from "./migrations/0015_counts.ts"
import shared from "./migrations/0016_shared.ts"
import startedDeliveries from "./migrations/0017_started_deliveries.ts"
import publicBins from "./migrations/0018_public_bins.ts"
import expectedUsers from "./migrations/0019_expected_users.ts"
import destinationTokens from "./migrations/0020_destination_tokens.ts"
import tunnels from "./migrations/0021_tunnels.ts"
import pairCounts from "./migrations/0022_pair_counts.ts"
import workflows from "./migrations/0023_workflows.ts"
import projectKeys from "./migrations/0024_project_keys.ts"
import filters from "./migrations/0025_filters.ts"
import actions from "./migrations/0026_actions.ts"
import teamValues from "./migrations/0027_team_values.ts"
import transformationVersions from "./migrations/0028_transformation_versions.ts"
import boundedWorkflows from "./migrations/0029_bounded_workflows.ts"
import authors from "./migrations/0030_authors.ts"
import teamCounts from "./migrations/0031_team_counts.ts"
import destinationHolds from "./migrations/0032_destination_holds.ts"
import retryIndexes from "./migrations/0033_retry_indexes.ts"
import bulkPlans from "./migrations/0034_bulk_plans.ts"
import workInHand from "./migrations/0035_work_in_hand.ts"
import bulkErrors from "./migrations/0036_bulk_errors.ts"
import idempotencyKeys from "./migrations/0037_idempotency_keys.ts"
import actionHolds from "./migrations/0038_action_holds.ts"
import providerAccounts from "./migrations/0039_provider_accounts.ts"
import channels from "./migrations/0040_channels.ts"
import runLabels from "./migrations/0041_run_labels.ts"
import workflowInputs from "./migrations/0042_workflow_inputs.ts"
import workflowTriggers from "./migrations/0043_workflow_triggers.ts"
import renewalRequests from "./migrations/0044_renewal_requests.ts"
import rerunOf from "./migrations/0045_rerun_of.ts"
import queueIndexes from "./migrations/0046_queue_indexes.ts"
import versionSettings from "./migrations/0047_version_settings.ts"
import workflowDrafts from "./migrations/0048_workflow_drafts.ts"
import workflowValues from "./migrations/0049_workflow_values.ts"
import systemEvents from "./migrations/0050_system_events.ts"
import workflowTurns from "./migrations/0051_workflow_turns.ts"
import workflowWindows from "./migrations/0052_workflow_windows.ts"
import workflowJoins from "./migrations/0053_workflow_joins.ts"
import workflowChildren from "./migrations/0054_workflow_children.ts"
import failureRuns from "./migrations/0055_failure_runs.ts"
import teamDeletions from "./migrations/0056_team_deletions.ts"
import acknowledgedAlerts from "./migrations/0057_acknowledged_alerts.ts"
import workflowAccounts from "./migrations/0058_workflow_accounts.ts"
import workflowTemplates from "./migrations/0059_workflow_templates.ts"
import workflowBatches from "./migrations/0060_workflow_batches.ts"
import dataDeletions from "./migrations/0061_data_deletions.ts"
import runPriorities from "./migrations/0062_run_priorities.ts"
import keyExpiry from "./migrations/0063_key_expiry.ts"
import sourceSchedules from "./migrations/0064_source_schedules.ts"
import sourceSubscriptions from "./migrations/0065_source_subscriptions.ts"
import moreBrokerSources from "./migrations/0066_more_broker_sources.ts"
import redisSources from "./migrations/0067_redis_sources.ts"
import connectionLinks from "./migrations/0068_connection_links.ts"
import kafkaSources from "./migrations/0069_kafka_sources.ts"
import pubSubSources from "./migrations/0070_pubsub_sources.ts"
import runnerLoads from "./migrations/0071_runner_loads.ts"
import quarterCounts from "./migrations/0072_quarter_counts.ts"
import { ensurePartitions } from "./retention/Partitions.ts"

/** In order, forward only: a released migration is never changed; the next one corrects a mistake. */
const record = {
  "0001_initial": initial,
  "0002_front_doors": frontDoors,
  "0003_presented": presented,
  "0004_source_slugs": sourceSlugs,
  "0005_retention": retention,
  "0006_commands": commands,
  "0007_recent_commands": recentCommands,
  "0008_isolation": isolation,
  "0009_rollup_batches": rollupBatches,
  "0010_source_periods": sourcePeriods,
  "0011_ordering": ordering,
  "0012_counted_routes": countedRoutes,
  "0013_people": people,
  "0014_bulk_operations": bulkOperations,
  "0015_counts": counts,
  "0016_shared": shared,
  "0017_started_deliveries": startedDeliveries,
  "0018_public_bins": publicBins,
  "0019_expected_users": expectedUsers,
  "0020_destination_tokens": destinationTokens,
  "0021_tunnels": tunnels,
  "0022_pair_counts": pairCounts,
  "0023_workflows": workflows,
  "0024_project_keys": projectKeys,
  "0025_filters": filters,
  "0026_actions": actions,
  "0027_team_values": teamValues,
  "0028_transformation_versions": transformationVersions,
  "0029_bounded_workflows": boundedWorkflows,
  "0030_authors": authors,
  "0031_team_counts": teamCounts,
  "0032_destination_holds": destinationHolds,
  "0033_retry_indexes": retryIndexes,
  "0034_bulk_plans": bulkPlans,
  "0035_work_in_hand": workInHand,
  "0036_bulk_errors": bulkErrors,
  "0037_idempotency_keys": idempotencyKeys,
  "0038_action_holds": actionHolds,
  "0039_provider_accounts": providerAccounts,
  "0040_channels": channels,
  "0041_run_labels": runLabels,
  "0042_workflow_inputs": workflowInputs,
  "0043_workflow_triggers": workflowTriggers,
  "0044_renewal_requests": renewalRequests,
  "0045_rerun_of": rerunOf,
  "0046_queue_indexes": queueIndexes,
  "0047_version_settings": versionSettings,
  "0048_workflow_drafts": workflowDrafts,
  "0049_workflow_values": workflowValues,
  "0050_system_events": systemEvents,
  "0051_workflow_turns": workflowTurns,
  "0052_workflow_windows": workflowWindows,
  "0053_workflow_joins": workflowJoins,
  "0054_workflow_children": workflowChildren,
  "0055_failure_runs": failureRuns,
  "0056_team_deletions": teamDeletions,
  "0057_acknowledged_alerts": acknowledgedAlerts,
  "0058_workflow_accounts": workflowAccounts,
  "0059_workflow_templates": workflowTemplates,
  "0060_workflow_batches": workflowBatches,
  "0061_data_deletions": dataDeletions,
  "0062_run_priorities": runPriorities,
  "0063_key_expiry": keyExpiry,
  "0064_source_schedules": sourceSchedules,
  "0065_source_subscriptions": sourceSubscriptions,
  "0066_more_broker_sources": moreBrokerSources,
  "0067_redis_sources": redisSources,
  "0068_connection_links": connectionLinks,
  "0069_kafka_sources": kafkaSources,
  "0070_pubsub_sources": pubSubSources,
  "0071_runner_loads": runnerLoads,
  "0072_quarter_counts": quarterCounts
}
const migrations = Migrator.fromRecord(record)

/** The number of this version's last migration. */
export const lastMigration = Object.keys(record).length

/**
 * The last migration of the oldest version that may start on this version's database: the version before, as a process of it restarts while
 * the others are updated. Move it forward together with `test/upgrade/Previous.ts`.
 */
const oldestStarting = 37

/** The row of `settings` in which the database says how old a version may be. */
export const oldestStartingName = "oldest_starting_migration"

/** The last migration of this version, and the last one that the database has; 0: it has none. */
export interface SchemaVersion {
  readonly wanted: number
  readonly present: number
}

/** Compares the schema with this version's. It only reads. */
export const schemaVersion: Effect.Effect<SchemaVersion, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [table] = yield* sql<{ there: boolean }>`select to_regclass('migrations') is not null as there`
    const [row] = table!.there
      ? yield* sql<{ last: number }>`select max(migration_id)::int4 as last from migrations`
      : []
    return {
      wanted: lastMigration,
      present: row?.last ?? 0
    }
  }
)

/**
 * How often the wait for a lock is repeated, which ends after `lockTimeout` each time: ten minutes in all. Another process may be migrating a
 * large database, and a process that ended for that would have to be started again by its operator.
 */
const maxLockWaits = 60

/**
 * Whether the migrations, which are one transaction, can succeed when they are repeated: processes of the previous version, which go on
 * working, held a lock for too long, or each waited for a lock of the other.
 */
const isForLocks = (error: Migrator.MigrationError | SqlError.SqlError): boolean => {
  const cause = error._tag === "MigrationError" ? error.cause : error
  return SqlError.isSqlError(cause) && /^(?:LockTimeout|Deadlock)Error$/.test(cause.reason._tag)
}

/**
 * Migrates the database to this version's schema, and creates the partitions of today. Processes that start together take turns.
 * Each migration is safe while processes of the previous version still run.
 */
export const migrate: Effect.Effect<void, Migrator.MigrationError | SqlError.SqlError, SqlClient.SqlClient> =
  Effect.gen(function* () {
    const done = yield* Migrator.make({})({ loader: migrations, table: "migrations" })
    const [first, last] = [done.at(0), done.at(-1)]
    if (first !== undefined && last !== undefined) {
      const which = done.length === 1 ? `${first[0]} ${first[1]}` : `${first[0]} ${first[1]} to ${last[0]} ${last[1]}`
      yield* Effect.logInfo(`migrated the database: ${which}`)
    }
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into settings (name, value) values (${oldestStartingName}, ${String(oldestStarting)})
      on conflict (name) do update set value = excluded.value where settings.value::int < excluded.value::int`
    yield* ensurePartitions(yield* Clock.currentTimeMillis)
  }).pipe(Effect.retry({ times: maxLockWaits, while: isForLocks }))
