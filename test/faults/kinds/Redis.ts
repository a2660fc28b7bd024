import { now, sleep } from "../../support/Waiting.ts"
import { type Fault, quiet, takeOverMs } from "../Fault.ts"

/** The limits and feeds that processes share through Redis continue in each process separately. */
export const redisAway: Fault = {
  name: "Redis away for 3 s",
  topology: "redis",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const redis = cluster.part("redis")
    const at = now()
    await redis.stop()
    await sleep(3_000)
    await redis.start()
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
}
