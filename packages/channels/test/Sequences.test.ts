import { describe, expect, it } from "vitest"
import { Random } from "../../entities/test/Random.ts"
import { dayMs, hourMs } from "../src/machine/Times.ts"
import type { SourceProvider, Trigger } from "../src/SourceProvider.ts"
import { sourceProviders } from "../src/SourceProviders.ts"
import { disturb, faultsOf, seeds } from "./disturbing.ts"
import { ProviderWorld } from "./ProviderWorld.ts"

/*
 * Random sequences of faults with the adapters and pollers of each trigger, at the fake provider. Whatever happens: no gap stays
 * without an alert, every item that the provider lists arrives once, and no subscription is left behind at the provider.
 */

const instant = sourceProviders.flatMap((provider) =>
  provider.triggers.flatMap((trigger): ReadonlyArray<readonly [string, SourceProvider, Trigger]> =>
    trigger.adapter === null ? [] : [[`${provider.key} ${trigger.key}`, provider, trigger]]
  )
)

const start = Date.UTC(2026, 0, 1)
/** Sequences of each trigger. All 2,000 take two minutes: `CHANNEL_SEQUENCES=2000 npm test -- packages/channels/test/Sequences.test.ts`. */
const count = Math.ceil(Number(process.env["CHANNEL_SEQUENCES"] ?? 300) / instant.length)
/** Shorter than those of the model, because a request and its answer cost more than a look into a list. */
const lasting = 10 * dayMs

const sequence = async (provider: SourceProvider, trigger: Trigger, seed: number): Promise<ProviderWorld> => {
  const random = new Random(seed)
  const world = new ProviderWorld(provider, trigger, {
    random,
    faults: faultsOf(random),
    autoFallback: random.chance(0.7),
    startAt: start
  })
  const end = start + lasting
  while (world.now < end) {
    await world.run(world.now + random.between(1, 48) * hourMs)
    for (let items = random.between(0, 4); items > 0; items--) world.item()
    if (random.chance(0.05)) world.fake.forgetCursors()
    if (random.chance(0.05)) {
      world.fake.lifecycle(random.pick(["reauthorizationRequired", "missed"]))
      world.send()
    }
    await disturb(world, random, world.inputs)
  }
  world.setMode("instant")
  const { account } = world.channel
  world.touch({
    disabled: false,
    account: account === null ? null : { ...account, state: "active" },
    retry_requested_at: world.now
  })
  return world
}

describe("Channels of real adapters", () => {
  it.each(instant)("Faults of %s lose no item, and no gap stays without an alert", async (_, provider, trigger) => {
    for (const seed of seeds(count)) {
      const world = await sequence(provider, trigger, seed)
      // A watch channel whose answer was lost cannot be stopped: it ends within a week.
      await world.calm((trigger.adapter!.key === "watch" ? 8 : 4) * dayMs)
      world.item()
      await world.calm(7 * hourMs)
      expect(world.missing, `seed ${seed}`).toEqual([])
      expect(world.strange, `seed ${seed}`).toEqual([])
      expect(world.channel.state.fallback.active, `seed ${seed}`).toBe(false)
      expect(world.active.length, `seed ${seed}`).toBe(world.targets.length)
      expect(world.deaf, `seed ${seed}`).toEqual([])
      expect(world.leftBehind, `seed ${seed}`).toEqual([])
    }
  })
})
