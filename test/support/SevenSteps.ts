import type { StoredRun } from "./StoredRuns.ts"
import { type Received, Target } from "./Target.ts"
import { sleep } from "./Waiting.ts"

/** A workflow with an example of everything that can happen to a run, and the target of its steps. */

export const steps = ["clean", "split", "flaky", "pause", "broken", "join", "last"] as const
export type Step = (typeof steps)[number]

/** One step, then two branches: one retries, the other waits and then fails. Both are joined, and one more step follows. */
const definition = (send: (step: Step) => object) => ({
  steps: [
    {
      id: "clean",
      kind: "action",
      action: { provider_key: "formatter", action_key: "text.trim" },
      invocation_inputs: { input: "{{trigger.body.name}}" }
    },
    {
      id: "split",
      kind: "branch",
      config: {
        paths: [
          { key: "a", rule: "conditions", conditions: { body: { name: { $exist: true } } } },
          { key: "b", rule: "always" }
        ]
      }
    },
    {
      id: "flaky",
      kind: "destination",
      ...send("flaky"),
      invocation_inputs: { body: { name: "{{steps.clean.output.result}}", token: "{{trigger.body.token}}" } },
      config: { retry: { strategy: "linear", interval: 1_000, count: 3 } }
    },
    { id: "pause", kind: "delay", config: { mode: "for", amount: 1, unit: "seconds" } },
    {
      id: "broken",
      kind: "destination",
      ...send("broken"),
      invocation_inputs: { body: { token: "{{trigger.body.token}}" } },
      config: { on_error: "continue" }
    },
    {
      id: "join",
      kind: "destination",
      ...send("join"),
      invocation_inputs: {
        body: {
          token: "{{trigger.body.token}}",
          flaky: "{{steps.flaky.output.body}}",
          broken: "{{steps.broken.error.code}}"
        }
      }
    },
    {
      id: "last",
      kind: "action",
      action: { provider_key: "formatter", action_key: "text.uppercase" },
      invocation_inputs: { input: "{{steps.join.output.body.flaky.name}}" }
    }
  ],
  edges: [
    { source_type: "trigger", target_step_id: "clean" },
    { source_type: "step", source_step_id: "clean", target_step_id: "split" },
    { source_type: "step", source_step_id: "split", source_port: "path_a", target_step_id: "flaky" },
    { source_type: "step", source_step_id: "split", source_port: "path_b", target_step_id: "pause" },
    { source_type: "step", source_step_id: "pause", target_step_id: "broken" },
    { source_type: "step", source_step_id: "flaky", target_step_id: "join" },
    { source_type: "step", source_step_id: "broken", target_step_id: "join" },
    { source_type: "step", source_step_id: "join", target_step_id: "last" }
  ]
})

/** Makes the workflow, its source and its destinations. `post` creates a resource of a list. */
export const create = async (
  post: (list: string, body: object) => Promise<{ readonly id: string }>,
  name: string,
  origin: string
): Promise<{ readonly source: string; readonly workflow: string }> => {
  const source = await post("/sources", { name })
  const destinations = new Map<string, string>()
  for (const step of Object.keys(usual)) {
    const { id } = await post("/destinations", { name: `${name}-${step}`, config: { url: `${origin}/${step}` } })
    destinations.set(step, id)
  }
  const graph = definition((step) => ({ resource_id: destinations.get(step) }))
  const workflow = await post("/workflows", { name, source_id: source.id, ...graph })
  return { source: source.id, workflow: workflow.id }
}

/** The body of a request. */
export const bodyOf = (token: string): string => JSON.stringify({ name: "  ada ", token })

export const keyOf = ({ headers }: Received): string => String(headers["idempotency-key"])
export const stepOf = ({ url }: Received): Step => url.slice(1) as Step
export const tokenOf = ({ body }: Received): string => (JSON.parse(body.toString()) as { token: string }).token

/**
 * Answers with the body that it received, after a delay of up to `longestMs`. `broken` is always refused, and `flaky` when its
 * key comes for the first time.
 */
export const echoing = (longestMs = 0) => {
  const refused = new Set<string>()
  return Target.start(async (response, received) => {
    const step = stepOf(received)
    const isFirst = step === "flaky" && !refused.has(keyOf(received))
    refused.add(keyOf(received))
    const status = step === "broken" ? 400 : isFirst ? 503 : 200
    if (longestMs > 0) await sleep(Math.random() * longestMs)
    response.writeHead(status, { "content-type": "application/json" }).end(received.body)
  })
}

/** How many requests each step sends in an undisturbed run. */
export const usual = { flaky: 2, broken: 1, join: 1 } as const

/** The result of a run, without times, token and attempt numbers. */
export const comeTo = ({ outcome, status, steps }: StoredRun, token: string) => ({
  status,
  outcome,
  steps: [...steps.entries()]
    .toSorted(([a], [b]) => a - b)
    .map(([index, { error, handled, output, ports, skipReason, status }]) => ({
      index,
      status,
      ports,
      handled,
      skipReason,
      // A step that has succeeded may still have the error of an earlier attempt.
      error: status === "failed" ? error?.code : null,
      gave: given(output, token)
    }))
})

/** Without the times of a delay and of a delivery. */
const given = (output: unknown, token: string): unknown => {
  const { body, result } = (output ?? {}) as { readonly body?: unknown; readonly result?: unknown }
  return result ?? JSON.stringify(body ?? null).replaceAll(token, "the token")
}

export const countOf = (requests: ReadonlyArray<Received>): Readonly<Record<string, number>> =>
  Object.fromEntries([...Map.groupBy(requests, stepOf)].map(([step, those]) => [step, those.length]))
