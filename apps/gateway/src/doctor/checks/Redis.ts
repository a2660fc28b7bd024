import { Context, Effect, Layer, Redacted } from "effect"
import * as Coordination from "@tidegate/coordination/Coordination"
import { fine, Installation, type MachineCheck, notice } from "../Check.ts"

/** Whether the configured Redis answers. The gateway works without it, so this is never more than a notice. */
export const redis: MachineCheck = {
  of: "machine",
  name: "redis",
  about: "whether Redis answers, if one is configured",
  look: Effect.gen(function* () {
    const { settings } = yield* Installation
    if (settings.redis === null) return fine("no Redis is configured: each process counts its own limits")
    const shared = yield* Layer.build(Coordination.layerRedis(settings.redis, Redacted.make(Buffer.alloc(32))))
    const { answers } = Context.get(shared, Coordination.RedisStatus)
    return answers() === true
      ? fine("Redis answers")
      : notice(
          "Redis does not answer: each process counts its own limits, and live streams show only what their process receives",
          "start it, or correct TIDEGATE_REDIS_URL; nothing is lost meanwhile"
        )
  }).pipe(Effect.scoped)
}
