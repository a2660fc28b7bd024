import type { Json } from "@tidegate/model/Rule"
import { completed, type Config, type Settings, type SettingsOf, writtenMembers } from "@tidegate/connectors/Settings"
import { type Complaint, decodeAll } from "@tidegate/rules/Decode"
import type { Action, ActionComplaint } from "@tidegate/workflows/Catalog"
import type { Step } from "@tidegate/workflows/Definition"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result, Schema } from "effect"
import type { Call } from "./Call.ts"

/**
 * What a provider of actions is. A provider is one row and one file: how it is told of, how it authenticates, and its actions, each of which makes a
 * call of its inputs. Everybody else reads the list in `Providers.ts`.
 */
export interface Provider {
  readonly key: string
  readonly name: string
  readonly description: string
  readonly icon_key: string
  /** Raised with every change of what the row says. */
  readonly manifest_version: string
  /** How its calls may authenticate; the first is what an action does that says nothing. */
  readonly auth: readonly [AuthMode, ...ReadonlyArray<AuthMode>]
  readonly actions: ReadonlyArray<ProviderAction>
}

/** What is written for an `auth_mode`, and kept sealed. */
export interface AuthMode {
  readonly key: string
  readonly fields: ReadonlyArray<CredentialField>
  /** Credentials as they are kept, or what is wrong with them, by member. A message holds none of them. */
  readonly judge: (credentials: Schema.JsonObject) => Result.Result<Schema.JsonObject, ReadonlyArray<Complaint>>
}

export interface CredentialField {
  readonly key: string
  readonly label: string
  readonly type: "secret" | "text"
  readonly required: boolean
  readonly help: string | null
}

/** What a call authenticates by. */
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
  /** JSON Schema of what it gives. */
  readonly output: Schema.JsonObject
  /** The member of the output that is most asked for; null: the whole. */
  readonly primary_output: string | null
  readonly sample: { readonly inputs: Schema.JsonObject; readonly output: Schema.JsonObject }
  readonly rate_limit: { readonly requests: number; readonly period: string } | null
}

export interface ProviderAction extends About {
  /** JSON Schema of what it takes. */
  readonly input: Schema.JsonObject
  /** As a step calls it. */
  readonly action: Action
  /** Absent: its credentials go to the one API that it calls. */
  readonly sentTo?: SentTo
  /** Makes the call of resolved inputs; null: it stays within the process. */
  readonly call: ((inputs: Inputs, credentials: Credentials) => Result.Result<Call, StepError>) | null
}

export interface Inputs {
  readonly [input: string]: Json
}

/** Where credentials go by the inputs that they are sent with. */
export interface SentTo {
  /** What tells it, the first of them first of all. */
  readonly inputs: ReadonlyArray<string>
  /** The same for the same party; null: it is not told, or by a template. */
  readonly of: (inputs: Inputs) => string | null
}

/** Of an input that its schema looks into. */
const maxValues = 1_000

/** Of a list or an object, and of the lists right in it. */
const countOf = (value: Json): number => {
  if (typeof value !== "object" || value === null) return 0
  const inner = Array.isArray(value) ? value : Object.values(value)
  return inner.length > maxValues
    ? inner.length
    : inner.reduce<number>((sum, one) => sum + (Array.isArray(one) ? one.length : 1), 0)
}

interface Calling<S extends Settings> extends About {
  /** Declared as a destination's settings are: each has a default, or is needed. */
  readonly inputs: S
  readonly sentTo?: SentTo
  readonly call: (inputs: SettingsOf<S>, credentials: Credentials) => Result.Result<Call, StepError>
  /** Puts inputs that come otherwise into the shape of their schemas. */
  readonly read?: (inputs: Inputs) => Inputs
}

/** An action that makes a call. What its inputs may be is judged where they are written, as far as they are no templates, and again when it runs. */
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
    // Before anything walks them.
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
    input: inputSchema(schema, required),
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

/** Settings speak of a `config`. */
const named = (faults: ReadonlyArray<Complaint>): ReadonlyArray<Complaint> =>
  faults.map(({ message, path }) => ({ message, path: path.replace(/^config\./, "") }))

/** Whether a template stands anywhere in it: what it will be is known when it runs. */
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
  // Names that it does not take are told of by the step.
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

const inputSchema = (schema: Schema.Constraint, required: ReadonlyArray<string>): Schema.JsonObject => {
  const { definitions, schema: made } = Schema.toJsonSchemaDocument(schema)
  const $defs = Object.keys(definitions).length === 0 ? {} : { $defs: definitions }
  const written = JSON.stringify({ ...made, required, additionalProperties: false, ...$defs }, (key, value) =>
    // What a destination fills from an event comes from the run here.
    key === "description" && String(value).startsWith("Placeholders: ") ? undefined : value
  )
  return JSON.parse(written) as Schema.JsonObject
}
