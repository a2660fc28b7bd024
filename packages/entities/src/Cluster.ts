import { Layer, Option, type Redacted } from "effect"
import { MessageStorage, RunnerAddress, type Sharding, ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import type { SqlError } from "effect/sql"
import * as Database from "@tidegate/storage/Database"
import { RunnerLoads } from "@tidegate/storage/RunnerLoads"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import * as Owners from "./dispatch/Owners.ts"
import { Lease } from "./Lease.ts"
import * as LoneRunner from "./LoneRunner.ts"
import { shardsPerGroup } from "./Shards.ts"
import * as Standby from "./Standby.ts"
import * as ClusterWire from "./Wire/ClusterWire.ts"

/**
 * How fast a dead runner is noticed; the same on every process of the cluster. A runner that is silent for `lockExpirationMs`
 * loses its shards. That is the longest gap in delivery after a crash, and the event loop must never be blocked for that long.
 */
const lockExpirationMs = 4_000

const timing = {
  shardLockExpiration: lockExpirationMs,
  // Also the time-out of one lock operation: three of them fit into the lease.
  shardLockRefreshInterval: "1300 millis",
  refreshAssignmentsInterval: "500 millis",
  runnerHealthCheckInterval: "1 second",
  // No message is stored in the cluster's tables: this is only how often a shard is tried again that could not be locked.
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
  /** A process that has one of these keys belongs to the cluster; the same keys as on the other processes. */
  readonly keys: KeyRing
}

export interface RunnerOptions extends ClusterOptions {
  /** Where other processes reach this runner. */
  readonly host: string
  readonly port: number
  /** Whether this runner may be on standby while others of its host can do the work. */
  readonly mayStandBy: boolean
}

const storage = (
  options: ClusterOptions,
  config: Partial<ShardingConfig.ShardingConfig["Service"]>,
  standby: Standby.StandbyOptions
) =>
  Standby.layer(standby).pipe(
    Layer.provide([SqlRunnerStorage.layer, RunnerLoads.layer]),
    Layer.provide([ShardingConfig.layer(config), Database.layerCluster(options.url)])
  )

/** Holds shards and runs their actors. */
export const layerRunner = (options: RunnerOptions): Layer.Layer<Sharding.Sharding | Lease, SqlError.SqlError> => {
  const own = RunnerAddress.make(options.host, options.port)
  const address = Option.some(own)
  const config = { ...common, runnerAddress: address, runnerListenAddress: address }
  return ClusterWire.layerRunner(options, options.keys).pipe(
    Layer.orDie,
    Layer.provideMerge(Lease.layerWatching({ expirationMs: lockExpirationMs })),
    Layer.provideMerge(Owners.layerWatching),
    Layer.provide(LoneRunner.layerAskingLess),
    Layer.provideMerge(storage(options, config, { address: own, isAllowed: options.mayStandBy })),
    Layer.provide([MessageStorage.layerNoop, ShardingConfig.layer(config)])
  )
}

/** Sends messages to actors, holds no shards. */
export const layerClient = (options: ClusterOptions): Layer.Layer<Sharding.Sharding, SqlError.SqlError> => {
  const config = { ...common, runnerAddress: Option.none(), runnerListenAddress: Option.none() }
  return ClusterWire.layerClient(options.keys).pipe(
    Layer.provideMerge(Owners.layerWatching),
    Layer.provide([
      storage(options, config, { address: null, isAllowed: false }),
      MessageStorage.layerNoop,
      ShardingConfig.layer(config)
    ])
  )
}
