import { Context, Effect, HashRing, Layer } from "effect"
import { type RunnerAddress, RunnerStorage } from "effect/cluster"
import { shardsPerGroup } from "../Shards.ts"

type Runners = Effect.Success<RunnerStorage.RunnerStorage["Service"]["getRunners"]>

/**
 * Which runner has each shard, so that what goes to the same one goes in one message. Worked out as the library does, from what it reads
 * for itself. Nothing depends on it but the number of messages: each goes where the library sends it, and whoever gets what is another's
 * passes it on.
 */
export const Owners = Context.Reference<{ readonly of: (shard: number) => RunnerAddress.RunnerAddress | undefined }>(
  "@tidegate/entities/Handover/Owners",
  { defaultValue: () => ({ of: () => undefined }) }
)

const assign = (runners: Runners): ReadonlyArray<RunnerAddress.RunnerAddress> => {
  const ring = HashRing.make<RunnerAddress.RunnerAddress>()
  for (const [{ address, weight }, healthy] of runners) if (healthy) HashRing.add(ring, address, { weight })
  return HashRing.getShards(ring, shardsPerGroup) ?? []
}

/** Looks on as the cluster reads who its runners are, and provides both. */
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
