import { Effect } from "effect"
import { bloatedTables, serverState } from "@tidegate/storage/diagnosis/ServerFacts"
import { type DatabaseCheck, type Finding, fine, notice, timeOf, wrong } from "../Check.ts"

/** Autovacuum freezes from 200 million transactions on. Long after that, something prevents it. */
const [lateAge, dangerousAge] = [600_000_000, 1_500_000_000] as const
const longTransaction = 3_600

export const vacuum: DatabaseCheck = {
  of: "database",
  name: "vacuum",
  about: "whether vacuum keeps up",
  look: Effect.gen(function* () {
    const { age, oldestTransaction } = yield* serverState
    const found: Array<Finding> = []
    const wayOut =
      "end what prevents vacuum: long transactions, prepared transactions, slots of lost replicas; then run vacuum (freeze)"
    if (age > dangerousAge) {
      found.push(
        wrong(
          `the oldest row is ${Math.round(age / 1e6)} million transactions old; at 2,000 million the server stops accepting writes`,
          wayOut
        )
      )
    } else if (age > lateAge) {
      found.push(notice(`the oldest row is ${Math.round(age / 1e6)} million transactions old: vacuum is late`, wayOut))
    }
    if (oldestTransaction > longTransaction) {
      found.push(
        notice(
          `a transaction has been open for ${timeOf(oldestTransaction)}: vacuum can remove nothing that is newer`,
          "find it in pg_stat_activity (order by xact_start), and end it with pg_terminate_backend(pid)"
        )
      )
    }
    for (const { dead, live, name } of yield* bloatedTables) {
      found.push(
        notice(
          `${name} has ${dead} dead rows and ${live} living ones`,
          `vacuum (verbose) ${name} says what prevents their removal`
        )
      )
    }
    return found.length > 0 ? found : fine("vacuum keeps up")
  })
}
