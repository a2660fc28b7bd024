/** The latency of senders to a source, while somebody posts to callback URLs that belong to no channel. */
import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import type { Plan } from "./Comparison.ts"
import { besideFlood, flood } from "./Flood.ts"

/** Tokens that no channel has: the gateway cannot know them all. */
const tokens = 1_000
const token = (): string => randomBytes(32).toString("hex").slice(0, 43)

export const floodedCallbacks = (plan: Plan) =>
  besideFlood(plan, {
    name: "flooded_callbacks",
    scenario: `${flood} requests/s to callbacks with ${tokens} wrong tokens, seen by senders to a source; reference: without them`,
    prepare: ({ origin }) =>
      Effect.succeed({ reference: [], gateway: Array.from({ length: tokens }, () => `${origin}/channels/${token()}`) }),
    drained: () => Effect.succeed(0),
    bounds: { p50: 1.25, p99: 1.25 }
  })
