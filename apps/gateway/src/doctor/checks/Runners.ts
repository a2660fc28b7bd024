import { Effect } from "effect"
import { tryToReach } from "@tidegate/entities/Wire/ClusterWire"
import { registeredRunners } from "@tidegate/storage/diagnosis/RunnerFacts"
import { type DatabaseCheck, type Finding, fine, Installation, notice, timeOf, wrong } from "../Check.ts"

/** A living runner writes every 1.3 s, and loses its shards after 4 s. */
const silentFor = 6
/** The most that are called; the others are judged by what they write. */
const called = 50

/** The runners, as the database knows them, and whether each answers here and belongs to this installation. */
export const runners: DatabaseCheck = {
  of: "database",
  name: "runners",
  about: "whether there are runners, and whether they can be reached from here",
  look: Effect.gen(function* () {
    const { keys } = yield* Installation
    const all = yield* registeredRunners
    const living = all.filter(({ silent }) => silent <= silentFor)
    const found: Array<Finding> = []
    for (const { address, silent } of all) {
      if (silent <= silentFor) continue
      const says = `the runner ${address} has given no sign of life for ${timeOf(silent)}`
      found.push(
        living.length === 0
          ? wrong(
              `${says}, and there is no other: nothing is delivered`,
              "start it; what has been accepted is delivered then"
            )
          : notice(
              `${says}; the others have taken over its work`,
              "start it, or leave it: its entry goes when a runner ends cleanly"
            )
      )
    }
    if (all.length === 0) {
      found.push(wrong("no runner is registered: nothing is delivered", "start a gateway with the role all or runner"))
    }
    const answers = yield* Effect.forEach(
      living.slice(0, called),
      ({ address }) => {
        const at = address.lastIndexOf(":")
        return Effect.map(
          tryToReach({ host: address.slice(0, at), port: Number(address.slice(at + 1)) }, keys),
          (answer) => ({ address, answer })
        )
      },
      { concurrency: 10 }
    )
    for (const { address, answer } of answers) {
      if (answer === "refused") {
        found.push(
          wrong(
            `the runner ${address} has other secret keys, or something else listens there`,
            "give all processes the same TIDEGATE_SECRET_KEYS, and each its own TIDEGATE_RUNNER_HOST and TIDEGATE_RUNNER_PORT"
          )
        )
      } else if (answer === "unreachable") {
        found.push(
          wrong(
            `the runner ${address} works, and cannot be reached from here`,
            living.length === 1
              ? "run this on its machine; or let its TIDEGATE_RUNNER_HOST be an address that other machines reach"
              : "open its TIDEGATE_RUNNER_PORT between the machines, and let TIDEGATE_RUNNER_HOST be an address that they reach"
          )
        )
      }
    }
    return found.length > 0
      ? found
      : fine(living.length === 1 ? "the runner answers" : `${living.length} runners answer`)
  })
}
