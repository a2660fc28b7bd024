import { Effect, Random as EffectRandom, type Schema } from "effect"
import type { Random } from "../../entities/test/Random.ts"
import { hourMs, minuteMs } from "../src/machine/Times.ts"
import type { ChannelWorld, Faults } from "./ChannelWorld.ts"

/* What happens to a channel in a random sequence. */

/** From another seed each time, which the test's name determines. */
export const seeds = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, () => Effect.runSync(EffectRandom.nextIntBetween(0, 2 ** 32 - 1)))

export const faultsOf = (random: Random): Faults => {
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

/** A world whose provider may end subscriptions. */
interface Disturbed extends ChannelWorld {
  /** Ends subscriptions, and says so or not. */
  readonly revoke: (isSaid: boolean) => void
}

/** `inputs`: those that the source may have. */
export const disturb = async (
  world: Disturbed,
  random: Random,
  inputs: ReadonlyArray<Schema.JsonObject>
): Promise<void> => {
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
      return world.setInputs(random.pick(inputs))
    case 6:
      return world.touch({ retry_requested_at: world.now })
    case 7:
      return world.touch({ run_id: `trun_${world.now}` })
    case 8: {
      const { account } = world.channel
      const state = random.pick(["active", "expired", "error"] as const)
      return account === null ? undefined : world.touch({ account: { ...account, state } })
    }
    case 9:
      world.faults = faultsOf(random)
      return
    case 10:
      // The gateway's clock is set back, or right again.
      world.behind = world.behind > 3 * minuteMs ? 0 : world.behind + random.between(1, 60_000)
      return
    default:
      return
  }
}
