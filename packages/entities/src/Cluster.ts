import { NodeClusterSocket } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { ConfigProvider, Layer, Option, type Redacted } from "effect"
import { MessageStorage, RunnerAddress, type Sharding, ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { Lease } from "./Lease.ts"
import { shardsPerGroup } from "./Shards.ts"

/**
 * How fast a dead runner is noticed, the same on every process that reads who is alive. A runner that is silent for
 * `lockExpirationMs` has lost its shards: that is the longest gap in delivery after a crash, and the event loop must
 * never be blocked for that long.
 */
const lockExpirationMs = 4_000

const timing = {
  shardLockExpiration: lockExpirationMs,
  // Also the patience with one lock operation: as long as three of them fit into the lease.
  shardLockRefreshInterval: "1300 millis",
  refreshAssignmentsInterval: "500 millis",
  runnerHealthCheckInterval: "1 second",
  // Nothing is stored as a cluster message; this is only how often a shard that could not be locked is tried again.
  entityMessagePollInterval: "1 second",
  sendRetryInterval: "50 millis",
  entityTerminationTimeout: "11 seconds"
} as const

const common = {
  ...timing,
  shardsPerGroup,
  maxResidentEntities: 200_000,
  simulateRemoteSerialization: false
}

export interface ClusterOptions {
  readonly url: Redacted.Redacted
}

export interface RunnerOptions extends ClusterOptions {
  /** Where other processes reach this runner. */
  readonly host: string
  readonly port: number
}

/** The cluster's own connections: one holds the shard locks for life, and no list or report may delay its refresh. */
const storage = (options: ClusterOptions, config: Partial<ShardingConfig.ShardingConfig["Service"]>) =>
  SqlRunnerStorage.layer.pipe(
    Layer.provide([
      ShardingConfig.layer(config),
      PgClient.layer({
        url: options.url,
        maxConnections: 4,
        applicationName: "tidegate-cluster",
        startupParameters: { timezone: "UTC", statement_timeout: "5s" }
      })
    ])
  )

/** The library reads its settings from the environment too; ours are all given, and `PORT` means something else here. */
const withoutEnvironment = Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))

/** Holds shards and runs their actors. */
export const layerRunner = (options: RunnerOptions): Layer.Layer<Sharding.Sharding | Lease, SqlError.SqlError> => {
  const address = Option.some(RunnerAddress.make(options.host, options.port))
  const config = { ...common, runnerAddress: address, runnerListenAddress: address }
  return NodeClusterSocket.layer({ storage: "byo", shardingConfig: config }).pipe(
    Layer.orDie,
    Layer.provideMerge(Lease.layerWatching({ expirationMs: lockExpirationMs })),
    Layer.provide([storage(options, config), MessageStorage.layerNoop]),
    withoutEnvironment
  )
}

/** Sends messages to actors, holds no shards. */
export const layerClient = (options: ClusterOptions): Layer.Layer<Sharding.Sharding, SqlError.SqlError> => {
  const config = { ...common, runnerAddress: Option.none(), runnerListenAddress: Option.none() }
  return NodeClusterSocket.layer({ storage: "byo", clientOnly: true, shardingConfig: config }).pipe(
    Layer.orDie,
    Layer.provide([storage(options, config), MessageStorage.layerNoop]),
    withoutEnvironment
  )
}
