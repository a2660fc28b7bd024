import type { Json } from "@tidegate/model/Rule"
import { Result } from "effect"
import { formatterAction } from "../src/actions/FormatterActions.ts"
import { type Action, type Catalog, catalogOf } from "../src/Catalog.ts"
import type { Evaluate } from "../src/StepKind.ts"
import { compileWorkflow, type Workflow } from "../src/Workflow.ts"
import type { Facts } from "../src/RunState.ts"

const echoed: Evaluate = ({ inputs }) => ({ kind: "succeeded", output: inputs, ports: ["out"] })

const calling =
  (evaluate: Evaluate): Action["compile"] =>
  ({ config }) =>
    Result.succeed({ config, evaluate })

/** Actions for graphs under test: one that stays within the process and gives back its inputs, and one that does not. */
const actions: Readonly<Record<string, Action>> = {
  "test.echo": { inputs: null, required: [], pure: true, compile: calling(echoed) },
  "test.named": {
    inputs: ["input", "other"],
    required: ["input"],
    pure: true,
    compile: (step) =>
      step.config["formatter"] === undefined
        ? calling(echoed)(step)
        : Result.fail([{ code: "FORMATTER_CONFIG_INVALID", field: "config.formatter", message: "is none" }])
  },
  "test.call": { inputs: null, required: [], pure: false, compile: calling(null) }
}

export const catalog: Catalog = catalogOf(
  new Map([
    ["test", ({ action_key }) => actions[`test.${action_key}`] ?? null],
    ["formatter", formatterAction]
  ])
)

type Written = Readonly<Record<string, unknown>>

export const echo = (id: string, invocation_inputs: Written | null = null, config: Written = {}): Written => ({
  id,
  kind: "action",
  action: { provider_key: "test", action_key: "echo" },
  invocation_inputs,
  config
})

export const call = (id: string, config: Written = {}, invocation_inputs: Written | null = null): Written => ({
  id,
  kind: "action",
  action: { provider_key: "test", action_key: "call" },
  invocation_inputs,
  config
})

export const send = (id: string, config: Written = {}): Written => ({
  id,
  kind: "destination",
  resource_id: "des_1",
  config
})

export const filter = (id: string, conditions: unknown): Written => ({ id, kind: "filter", config: { conditions } })

export const branch = (id: string, paths: unknown, evaluation?: string): Written => ({
  id,
  kind: "branch",
  config: evaluation === undefined ? { paths } : { paths, evaluation }
})

export const store = (id: string, config: Written, invocation_inputs: Written): Written => ({
  id,
  kind: "store",
  config,
  invocation_inputs
})

export const delay = (id: string, config: Written): Written => ({ id, kind: "delay", config })

/** From the trigger, `from` being "": to `target`, by `port` when it is not the first. */
export const edge = (from: string, target: string, more: Written = {}): Written => ({
  source_type: from === "" ? "trigger" : "step",
  source_step_id: from === "" ? null : from,
  target_step_id: target,
  ...more
})

export const compiled = (steps: ReadonlyArray<Written>, edges: ReadonlyArray<Written>): Workflow =>
  Result.getOrThrowWith(
    compileWorkflow(steps, edges, catalog),
    (issues) => new Error(issues.map(({ code, field, message }) => `${code} ${field}: ${message}`).join("\n"))
  )

export const facts = (body: Json = {}): Facts => ({
  trigger: { request_id: "req_1", method: "POST", path: "/", headers: { "x-kind": "paid" }, query: {}, body },
  run: { id: "wfr_1", attempt: 1 },
  workflow: { id: "wfl_1", name: "x", version: 1 },
  source: { id: "src_1", name: "shop" }
})
