import type { Json } from "@tidegate/model/Rule"
import {
  completed,
  type Config,
  type Settings,
  type SettingsOf,
  settingsSchema,
  writtenMembers
} from "@tidegate/connectors/Settings"
import { type Complaint, decodeAll } from "@tidegate/rules/Decode"
import type { Action, ActionComplaint } from "@tidegate/workflows/Catalog"
import type { Step } from "@tidegate/workflows/Definition"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result, Schema } from "effect"
import type { Call } from "./Call.ts"

/**
 * A provider of actions. A provider is one row and one file: its description, how it authenticates, and its actions. Each action makes a call from
 * its inputs. All other code reads the list in `Providers.ts`.
 */
export interface Provider {
  readonly key: string
  readonly name: string
  readonly description: string
  readonly icon_key: string
  /** Increased with every change of the row. */
  readonly manifest_version: string
  /** How its calls can authenticate. The first is the default. */
  readonly auth: readonly [AuthMode, ...ReadonlyArray<AuthMode>]
  readonly actions: ReadonlyArray<ProviderAction>
}

/** The credentials of an `auth_mode`, which are stored encrypted. */
export interface AuthMode {
  readonly key: string
  readonly fields: ReadonlyArray<CredentialField>
  /** The credentials to store, or the errors by member. Messages contain no credentials. */
  readonly judge: (credentials: Schema.JsonObject) => Result.Result<Schema.JsonObject, ReadonlyArray<Complaint>>
}

export interface CredentialField {
  readonly key: string
  readonly label: string
  readonly type: "secret" | "text"
  readonly required: boolean
  readonly help: string | null
}

/** The credentials of a call. */
export interface Credentials {
  readonly mode: string
  readonly values: Schema.JsonObject
}

export const noCredentials: Credentials = { mode: "none", values: {} }

interface About {
  readonly key: string
  readonly name: string
  readonly description: string
  readonly category: string
  readonly version: string
  /** JSON Schema of the output. */
  readonly output: Schema.JsonObject
  /** The member of the output that is used most; null: the whole output. */
  readonly primary_output: string | null
  readonly sample: { readonly inputs: Schema.JsonObject; readonly output: Schema.JsonObject }
  readonly rate_limit: { readonly requests: number; readonly period: string } | null
}

export interface ProviderAction extends About {
  /** JSON Schema of the inputs. */
  readonly input: Schema.JsonObject
  /** As a step calls it. */
  readonly action: Action
  /** Absent: the credentials are sent to the only API that the action calls. */
  readonly sentTo?: SentTo
  /** Makes the call from resolved inputs; null: the action runs in the process. */
  readonly call: ((inputs: Inputs, credentials: Credentials) => Result.Result<Call, StepError>) | null
}

export interface Inputs {
  readonly [input: string]: Json
}

/** Where credentials are sent, as the inputs say. */
export interface SentTo {
  /** The inputs that determine it, the most important first. */
  readonly inputs: ReadonlyArray<string>
  /** Equal for the same receiver; null: the inputs do not say, or contain a template. */
  readonly of: (inputs: Inputs) => string | null
}

/** Limits of an input that its schema validates in depth. */
const maxValues = 1_000

/** Limits of a list or an object, and of the lists directly in it. */
const countOf = (value: Json): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner = Array.isArray(value) ? value : Object.values(value)
  return inner.length > maxValues
    ? inner.length
    : inner.reduce<number>((sum, one) => sum + (Array.isArray(one) ? one.length : 1), 0)
}

interface Calling<S extends Settings> extends About {
  /** Declared like a destination's settings: each has a default or is required. */
  readonly inputs: S
  readonly sentTo?: SentTo
  readonly call: (inputs: SettingsOf<S>, credentials: Credentials) => Result.Result<Call, StepError>
  /** Converts inputs in other forms to the form of their schemas. */
  readonly read?: (inputs: Inputs) => Inputs
}

/** An action that makes a call. Inputs without templates are validated when they are written; all inputs are validated when the step runs. */
export const calling = <const S extends Settings>({
  call,
  inputs,
  read = (given) => given,
  ...about
}: Calling<S>): ProviderAction => {
  const schema = Schema.Struct(writtenMembers(inputs, {})) as unknown as Schema.ConstraintDecoder<Config>
  const names = Object.keys(inputs)
  const required = names.filter((name) => "needed" in inputs[name]!)
  const judge = (given: Inputs): Result.Result<Config, ReadonlyArray<Complaint>> => {
    // Before any code walks them.
    const unwieldy = Object.entries(given).filter(([name, value]) => {
      const ast = Object.hasOwn(inputs, name) ? inputs[name]!.schema.ast : undefined
      return ast?._tag !== "Unknown" && countOf(value) > maxValues
    })
    return unwieldy.length > 0
      ? Result.fail(unwieldy.map(([path]) => ({ path, message: `must have at most ${maxValues} values` })))
      : decodeAll(schema, read(given), `the inputs of ${about.key}`)
  }
  return {
    ...about,
    input: inputSchema(inputs),
    action: {
      inputs: names,
      required,
      pure: false,
      output: about.output,
      outputSample: about.sample.output,
      compile: (step) => {
        const faults = [...settingFaults(step), ...faultsOf(step.invocation_inputs ?? {}, judge)]
        return faults.length > 0 ? Result.fail(faults) : Result.succeed({ config: step.config, evaluate: null })
      }
    },
    call: (given, credentials) => {
      const complete = Result.flatMap(judge(given), (decoded) => Result.mapError(completed(inputs, decoded), named))
      return Result.isSuccess(complete) ? call(complete.success, credentials) : Result.fail(invalid(complete.failure))
    }
  }
}

export const invalid = ([first]: ReadonlyArray<Complaint>): StepError => ({
  code: "INPUT_INVALID",
  message: first === undefined ? "an input is not valid" : `${first.path}: ${first.message}`
})

/** Messages of settings name `config`. */
const named = (faults: ReadonlyArray<Complaint>): ReadonlyArray<Complaint> =>
  faults.map(({ message, path }) => ({ message, path: path.replace(/^config\./, "") }))

/** Whether it contains a template: then its value is known only when the step runs. */
export const isOpen = (value: Json): boolean =>
  typeof value === "string"
    ? value.includes("{{")
    : typeof value === "object" && value !== null && Object.values(value).some(isOpen)

const faultsOf = (
  written: Inputs,
  judge: (given: Inputs) => Result.Result<unknown, ReadonlyArray<Complaint>>
): ReadonlyArray<ActionComplaint> => {
  const judged = judge(Object.fromEntries(Object.entries(written).filter(([, value]) => !isOpen(value))))
  if (Result.isSuccess(judged)) return []
  // The step reports unknown names.
  return judged.failure.flatMap(({ message, path }) =>
    message.startsWith("is not a field of")
      ? []
      : [{ code: "STEP_CONFIG_INVALID" as const, field: `invocation_inputs.${path}`, message }]
  )
}

const settingFaults = ({ config }: Step): ReadonlyArray<ActionComplaint> =>
  config["formatter"] === undefined
    ? []
    : [{ code: "STEP_CONFIG_INVALID", field: "config.formatter", message: "is for the formatter's actions" }]

const inputSchema = (inputs: Settings): Schema.JsonObject => {
  const written = JSON.stringify(settingsSchema(inputs), (key, value) =>
    // An action takes from the run what a destination takes from an event.
    key === "description" && String(value).startsWith("Placeholders: ") ? undefined : value
  )
  return JSON.parse(written) as Schema.JsonObject
}
