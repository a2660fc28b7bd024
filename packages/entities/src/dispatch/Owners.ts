import { Context, Effect, HashRing, Layer } from "effect"
import { type RunnerAddress, RunnerStorage } from "effect/cluster"
import { shardsPerGroup } from "../Shards.ts"

type Runners = Effect.Success<RunnerStorage.RunnerStorage["Service"]["getRunners"]>

/**
 * Which runner holds each shard, so that events for the same runner go in one message. It is computed as the library computes it,
 * from the rows that the library reads. Only the number of messages depends on it: the library decides where a message goes, and
 * a runner that gets events for another one passes them on.
 */
export const Owners = Context.Reference<{ readonly of: (shard: number) => RunnerAddress.RunnerAddress | undefined }>(
  "@tidegate/entities/dispatch/Owners",
  { defaultValue: () => ({ of: () => undefined }) }
)

const assign = (runners: Runners): ReadonlyArray<RunnerAddress.RunnerAddress> => {
  const ring = HashRing.make<RunnerAddress.RunnerAddress>()
  for (const [{ address, weight }, healthy] of runners) if (healthy) HashRing.add(ring, address, { weight })
  return HashRing.getShards(ring, shardsPerGroup) ?? []
}

/** Observes the runner storage while the cluster reads its list of runners, and provides both. */
export const layerWatching: Layer.Layer<RunnerStorage.RunnerStorage, never, RunnerStorage.RunnerStorage> =
  Layer.effectContext(
    Effect.map(RunnerStorage.RunnerStorage, (storage) => {
      let seen = ""
      let assigned: ReadonlyArray<RunnerAddress.RunnerAddress> = []
      const look = (runners: Runners): void => {
        const now = runners.map(
          ([{ address, weight }, healthy]) => `${address.host}:${address.port} ${weight} ${healthy}`
        )
        const key = now.toSorted().join()
        if (key === seen) return
        seen = key
        assigned = assign(runners)
      }
      return Context.make(Owners, { of: (shard) => assigned[shard - 1] }).pipe(
        Context.add(RunnerStorage.RunnerStorage, {
          ...storage,
          getRunners: Effect.tap(storage.getRunners, (runners) => Effect.sync(() => look(runners)))
        })
      )
    })
  )
