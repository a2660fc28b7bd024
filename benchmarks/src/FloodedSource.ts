/** The latency of senders to one source, while each request to another, flooded source begins runs of several workflows. */
import * as Effect from "effect/Effect"
import type { Plan } from "./Comparison.ts"
import { besideFlood, flood } from "./Flood.ts"
import { graphs } from "./WorkflowGraphs.ts"
import { drained } from "./Workflows.ts"

const workflows = 6

export const floodedSource = (plan: Plan) =>
  besideFlood(plan, {
    name: "flooded_source",
    scenario: `${workflows} workflows on a source with ${flood} requests/s, seen by senders to another; reference: the same flood without workflows`,
    prepare: Effect.fnUntraced(function* (gateway) {
      const graph = graphs[1]!
      const destination = yield* gateway.create("destinations", {
        name: "flooded",
        type: "HTTP",
        config: { url: `${plan.bench.targetOrigin}/flooded_source` }
      })
      const source = (name: string) => gateway.create("sources", { name, type: "WEBHOOK" })
      const [plain, loud] = [yield* source("plain"), yield* source("loud")]
      const steps = graph.steps(destination)
      for (let n = 0; n < workflows; n++) {
        yield* gateway.create("workflows", { name: `loud-${n}`, source_id: loud, steps, edges: graph.edges })
      }
      return { reference: [`${gateway.origin}/e/${plain}`], gateway: [`${gateway.origin}/e/${loud}`] }
    }),
    drained,
    bounds: { p50: 1.25 }
  })
