import { metrics } from "@tidegate/telemetry/Metrics"
import type { Execution } from "./Call.ts"
import type { Ran } from "./Messages.ts"

/** Counts the wait of a call that was sent to a child; `since`: when it was put in the queue. */
export const countWait = (since: number): void =>
  metrics.sandboxWaitSeconds.observe((performance.now() - since) / 1_000)

/** Counts the context (fresh or sealed) of a call whose result counts. */
export const countWorld = ({ isSealed, verdict }: Ran): void =>
  metrics.sandboxWorlds.at(isSealed ? "sealed" : verdict === null ? "fresh" : "compared").add()

/** Counts the result of a call, and logs it. A text is the reason why the call could not run. */
export const countEnd =
  <A extends Execution | string>(done: (ending: A) => void) =>
  (ending: A): void => {
    if (typeof ending === "string") metrics.sandboxCalls.at("unavailable").add()
    else {
      const code = ending.error?.code
      metrics.sandboxCalls
        .at(code === undefined ? "ok" : code === "TIMEOUT" || code === "MEMORY_LIMIT" ? code : "error")
        .add()
      metrics.sandboxSeconds.observe(ending.durationMs / 1_000)
    }
    done(ending)
  }
