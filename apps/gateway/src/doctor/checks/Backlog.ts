import { Clock, Effect } from "effect"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import { type WaitingWork, waitingWork } from "@tidegate/storage/diagnosis/WaitingWork"
import { type DatabaseCheck, type Finding, fine, notice, timeOf, wrong } from "../Check.ts"

/** Work that has been due for so many seconds is late, and very late. */
const [late, veryLate] = [60, 900] as const
/** Destinations that are named. */
const named = 5

const judgeAge = (what: string, waiting: number, seconds: number, wayOut: string): Finding | null => {
  if (seconds < late) return null
  const says = `${waiting} ${what}, the oldest for ${timeOf(seconds)}`
  return seconds < veryLate ? notice(says, wayOut) : wrong(says, wayOut)
}

export const judgeWork = ({ deliveries, routes, runs }: WaitingWork, now: number): ReadonlyArray<Finding> => {
  const since = (at: number | null): number => (at === null ? 0 : (now - at) / 1_000)
  const found = [
    ...deliveries
      .slice(0, named)
      .map(({ destinationId, oldestDue, waiting }) =>
        judgeAge(
          `deliveries wait for ${destinationId}`,
          waiting,
          since(oldestDue),
          `look at its attempts (tidegate events --destination ${destinationId}): its rate limit or its target is slower than what arrives, or no runner works`
        )
      ),
    judgeAge(
      "runs of workflows wait",
      runs.waiting,
      since(runs.oldestDue),
      "look at the runs (tidegate workflows logs), and whether the runners have processor time left"
    ),
    judgeAge(
      "requests wait for transformations and deduplication",
      routes.waiting,
      since(routes.oldest),
      "look at the executions of transformations, and whether the runners have processor time left"
    )
  ].filter((finding) => finding !== null)
  if (found.length > 0) return found
  const waiting = deliveries.reduce((sum, next) => sum + next.waiting, 0)
  return [fine(`${waiting} deliveries, ${runs.waiting} runs and ${routes.waiting} routing jobs wait, and none is late`)]
}

export const backlog: DatabaseCheck = {
  of: "database",
  name: "backlog",
  about: "whether work waits that should have been done",
  look: Effect.gen(function* () {
    return judgeWork(yield* waitingWork(shardsPerGroup), yield* Clock.currentTimeMillis)
  })
}
