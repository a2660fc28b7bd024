import { Clock, Effect } from "effect"
import { missingPartitions } from "@tidegate/storage/retention/Partitions"
import { type DatabaseCheck, fine, wrong } from "../Check.ts"

/** Whether there are tables for today's and tomorrow's records. A running gateway creates them three days ahead. */
export const partitions: DatabaseCheck = {
  of: "database",
  name: "partitions",
  about: "whether there are tables for the records of today and tomorrow",
  look: Effect.gen(function* () {
    const missing = yield* missingPartitions(yield* Clock.currentTimeMillis)
    if (missing.length === 0) return fine("there are tables for today and tomorrow")
    const [first] = missing
    return wrong(
      `${missing.length} tables for today or tomorrow are missing, ${first} among them`,
      "start a gateway; one that runs creates them each hour, and its log says why it could not"
    )
  })
}
