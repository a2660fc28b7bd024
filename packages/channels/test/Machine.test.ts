import { Effect, Random as EffectRandom } from "effect"
import { describe, expect, it } from "vitest"
import { Random } from "../../entities/test/Random.ts"
import { dayMs, hourMs } from "../src/machine/Times.ts"
import { type Behaviour, ChannelWorld, type Faults } from "./ChannelWorld.ts"

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

/** From another seed each time, which the test's name determines. */
const seeds = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, () => Effect.runSync(EffectRandom.nextIntBetween(0, 2 ** 32 - 1)))

const start = Date.UTC(2026, 0, 1)

const faultsOf = (random: Random): Faults => {
  const likely = () => random.pick([0, 0.02, 0.1, 0.4])
  return {
    refused: likely(),
    lost: likely(),
    crash: random.pick([0, 0.02, 0.1]),
    unheard: likely(),
    repeated: likely(),
    delayed: likely()
  }
}

const disturb = (world: ChannelWorld, random: Random): void => {
  switch (random.between(0, 13)) {
    case 0:
      return world.revoke(true)
    case 1:
      return world.revoke(false)
    case 2:
      return world.run(world.now + random.between(1, 3 * 24) * hourMs, true)
    case 3:
      return world.touch({ disabled: !world.channel.disabled })
    case 4:
      return world.setMode(world.channel.definition?.mode === "instant" ? "polling" : "instant")
    case 5:
      return world.setTargets(random.between(1, 2))
    case 6:
      return world.touch({ retry_requested_at: world.now })
    case 7:
      return world.touch({ run_id: `trun_${world.now}` })
    case 8:
      return world.touch({ account: { id: "pac_1", state: random.pick(["active", "expired", "error"]) } })
    case 9:
      world.faults = faultsOf(random)
      return
    case 10:
      // The clock is set back.
      world.now -= random.between(1, 60_000)
      return
    default:
      return
  }
}

const sequence = (behaviour: Behaviour, seed: number): ChannelWorld => {
  const random = new Random(seed)
  const world = new ChannelWorld(random, behaviour, faultsOf(random), random.chance(0.7), start)
  const end = start + 60 * dayMs
  while (world.now < end) {
    world.run(world.now + random.between(1, 48) * hourMs)
    for (let items = random.between(0, 4); items > 0; items--) world.item()
    disturb(world, random)
  }
  world.setMode("instant")
  world.touch({ disabled: false, account: { id: "pac_1", state: "active" }, retry_requested_at: world.now })
  return world
}

describe("Channel machine", () => {
  for (const behaviour of behaviours) {
    it(`Over 60 days of faults a channel of ${behaviour.name} loses no item, and no gap stays without an alert`, () => {
      for (const seed of seeds(400)) {
        const world = sequence(behaviour, seed)
        // Long enough for tries that are made every hour, a restore, and the silence check of what the provider has dropped.
        world.calm(4 * dayMs)
        expect(world.missing, `seed ${seed}`).toEqual([])
        expect(world.channel.state.fallback.active, `seed ${seed}`).toBe(false)
        const { gateway, provider } = world.subscribed
        expect(gateway.length, `seed ${seed}`).toBe(Number(world.channel.settings!.inputs["targets"]))
        // A provider may have dropped a subscription without a word, but has none that the gateway does not know.
        expect(
          provider.filter((id) => !gateway.includes(id)),
          `seed ${seed}`
        ).toEqual([])
        expect(world.steps, `seed ${seed}`).toBeLessThan(20_000)
      }
    })
  }
})
