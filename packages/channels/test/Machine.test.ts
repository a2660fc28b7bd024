import { describe, expect, it } from "vitest"
import { Random } from "../../entities/test/Random.ts"
import { dayMs, hourMs } from "../src/machine/Times.ts"
import { disturb, faultsOf, seeds } from "./disturbing.ts"
import { type Behaviour, ModelWorld } from "./ModelWorld.ts"

/*
 * Random sequences of faults over sixty days, for each way in which providers notify. Whatever happens: no gap stays without an
 * alert, every item that the provider lists arrives in the end, and no subscription is left behind at the provider.
 */

const week = { lifeMs: 7 * dayMs, handshake: false, fat: false, refusesRepetition: false }

const behaviours: ReadonlyArray<Behaviour> = [
  { name: "watch (no renewal, dirty)", ...week, renews: false, refusesRepetition: true },
  { name: "graph (renewal, dirty)", ...week, renews: true, lifeMs: 3 * dayMs },
  { name: "websub (renewal by handshake, fat)", ...week, renews: true, handshake: true, fat: true },
  { name: "eventsub (perpetual, handshake, fat)", ...week, renews: false, lifeMs: null, handshake: true, fat: true },
  { name: "repo_webhook (perpetual, fat)", ...week, renews: false, lifeMs: null, fat: true, refusesRepetition: true }
]

const start = Date.UTC(2026, 0, 1)

const sequence = async (behaviour: Behaviour, seed: number): Promise<ModelWorld> => {
  const random = new Random(seed)
  const world = new ModelWorld(random, behaviour, faultsOf(random), random.chance(0.7), start)
  const end = start + 60 * dayMs
  while (world.now < end) {
    await world.run(world.now + random.between(1, 48) * hourMs)
    for (let items = random.between(0, 4); items > 0; items--) world.item()
    await disturb(world, random, [{ targets: 1 }, { targets: 2 }])
  }
  world.setMode("instant")
  world.touch({ disabled: false, account: { id: "pac_1", state: "active" }, retry_requested_at: world.now })
  return world
}

describe("Channel machine", () => {
  for (const behaviour of behaviours) {
    it(`Over 60 days of faults a channel of ${behaviour.name} loses no item, and no gap stays without an alert`, async () => {
      for (const seed of seeds(400)) {
        const world = await sequence(behaviour, seed)
        // Long enough for tries that are made every hour, a restore, and the silence check of what the provider has dropped.
        await world.calm(4 * dayMs)
        expect(world.missing, `seed ${seed}`).toEqual([])
        expect(world.channel.state.fallback.active, `seed ${seed}`).toBe(false)
        expect(world.active.length, `seed ${seed}`).toBe(world.targets.length)
        // A provider may have dropped a subscription without a word, but has none that the gateway does not know.
        expect(world.leftBehind, `seed ${seed}`).toEqual([])
        expect(world.steps, `seed ${seed}`).toBeLessThan(20_000)
      }
    })
  }
})
