import { bound, judgedAsWritten, namesOf, shownAt, unbound } from "@tidegate/formatter/Binding"
import {
  compile,
  type Failure,
  inParts,
  type Step as FormatterStep,
  supportedVersions
} from "@tidegate/formatter/Formatter"
import type { Fault } from "@tidegate/formatter/engine/Fault"
import { isDear, type StepResult } from "@tidegate/formatter/Task"
import { operations } from "@tidegate/formatter/Operations"
import type { Json } from "@tidegate/model/Rule"
import { Predicate, Result } from "effect"
import type { Action, ActionComplaint } from "../Catalog.ts"
import type { InlineAction, Step } from "../Definition.ts"
import type { ApartTask, Evaluation, Outcome, Resumable } from "../StepKind.ts"

/**
 * The formatter's operations, each an action. They stay within the process, and their results depend only on the run: "now" is
 * when its request was received, and randomness is derived from the run, the step and the element. So a retry gives the same
 * result.
 */

interface Settings {
  readonly engine_version?: string
  readonly options?: { readonly [option: string]: Json }
}

const settingsOf = ({ config }: Step): Settings =>
  Predicate.isReadonlyObject(config["formatter"]) ? (config["formatter"] as Settings) : {}

/** The formatter's action with that name; null: there is none. */
export const formatterAction = ({ action_key, version }: InlineAction): Action | null => {
  const operation = operations.get(action_key)
  if (operation === undefined || !supportedVersions.includes(version)) return null
  return {
    inputs: namesOf(operation),
    // The operation itself reports missing inputs, with a code that says that another attempt cannot succeed.
    required: [],
    pure: true,
    output: operation.output,
    bind: {
      judge: (written) => Result.mapError(judgedAsWritten(operation, written), wrongInput),
      inputs: (written) => Result.mapError(bound(operation, written), wrongInput),
      shown: (path) => shownAt(operation, path)
    },
    compile: (step) => {
      const { engine_version, options = {} } = settingsOf(step)
      const compiled = compile({ operation: action_key, engine_version, options })
      if (Result.isFailure(compiled)) return Result.fail([complaint(compiled.failure)])
      const { version: saved } = compiled.success
      return Result.succeed({
        config: { ...step.config, formatter: { engine_version: saved, options } },
        evaluate: (evaluation) => evaluate(compiled.success, step.id, evaluation),
        apart: (evaluation) => apart(compiled.success, { engine_version: saved, options }, step.id, evaluation)
      })
    }
  }
}

const wrongInput = ({ code, details, message }: Fault): { readonly input: string; readonly message: string } => ({
  input: details.field ?? "formula",
  message: `${code}: ${message}`
})

const complaint = ({ code, details, message }: Failure): ActionComplaint => {
  const option = details.field === undefined ? "options" : `options.${details.field}`
  const at = code === "FORMATTER_VERSION_UNSUPPORTED" ? "engine_version" : option
  return { code: "FORMATTER_CONFIG_INVALID", field: `config.formatter.${at}`, message: `${code}: ${message}` }
}

/** What an operation uses beside its inputs: the same for every attempt. */
const groundsOf = (id: string, { context, time }: Evaluation) => {
  const { item_index, run, trigger } = context
  const received = Date.parse(String(trigger["received_at"]))
  return {
    anchor: Number.isNaN(received) ? time.now : received,
    timezone: "UTC",
    seed: [run["id"], id, item_index ?? ""].join("\u0000")
  }
}

const apart = (
  { operation }: FormatterStep,
  { engine_version, options }: Required<Settings>,
  id: string,
  evaluation: Evaluation
): ApartTask | null => {
  const inputs = unbound(operation, evaluation.inputs)
  if (!isDear(operation, inputs)) return null
  const config = { operation: operation.key, engine_version, options }
  return { task: { kind: "step", config, inputs, ...groundsOf(id, evaluation) }, outcome: outcomeOf }
}

function* evaluate(step: FormatterStep, id: string, evaluation: Evaluation): Resumable<Outcome> {
  const { inputs, time } = evaluation
  const inputsOf = unbound(step.operation, inputs)
  return outcomeOf(yield* inParts(step, inputsOf, { ...groundsOf(id, evaluation), clock: time.clock }))
}

const outcomeOf = (ran: StepResult): Outcome => {
  if (Result.isFailure(ran)) {
    const { code, message } = ran.failure
    return { kind: "failed", error: { code, message } }
  }
  return { kind: "succeeded", output: ran.success.output, ports: ["out"], warnings: ran.success.warnings }
}
