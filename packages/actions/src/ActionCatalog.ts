import { Effect, Result, type Schema } from "effect"
import type { Action, Catalog, SavedAction } from "@tidegate/workflows/Catalog"
import { type ActionName, actionOf, formatterKey, inlineActionOf, sentToOf } from "./Providers.ts"

/** The actions that steps may call: those of the providers, and the team's saved ones. */

/** The content of a saved action. A run uses the same content until it ends. */
export interface SavedContent {
  readonly provider_key: string
  readonly action_key: string
  /** The version of the action's schema. */
  readonly version: string
  readonly inputs: Schema.JsonObject
  /** Whether credentials are saved with it, if that was requested. */
  readonly holdsCredentials?: boolean
}

/**
 * An action with the credentials of a saved one, which a step may send to no other target. A target with a template is checked
 * when it runs.
 */
const stayingAt = (content: SavedContent, action: Action): Action => ({
  ...action,
  compile: (step) => {
    const { inputs, of } = sentToOf(content)
    const saved = of(content.inputs)
    const own = step.invocation_inputs ?? {}
    const target = of(Object.assign({}, content.inputs, own))
    const isOther = (name: string): boolean =>
      Object.hasOwn(own, name) && of(Object.assign({}, content.inputs, { [name]: own[name] })) !== saved
    return target === null || target === saved
      ? action.compile(step)
      : Result.fail([
          {
            code: "STEP_CONFIG_INVALID",
            field: `invocation_inputs.${inputs.find(isOther) ?? inputs[0]}`,
            message: "is another address than that of the saved action, to which its credentials belong"
          }
        ])
  }
})

/** The formatter is loaded by the first workflow that uses it: a gateway without one does not have it in memory. */
const formatter = Effect.promise(() => import("@tidegate/workflows/actions/FormatterActions"))

const member = (of: unknown, name: string): unknown =>
  typeof of === "object" && of !== null && Object.hasOwn(of, name)
    ? (of as Readonly<Record<string, unknown>>)[name]
    : undefined

const namesFormatter = (step: Schema.Json): boolean => member(member(step, "action"), "provider_key") === formatterKey

/**
 * The catalog for these steps, which may name these saved actions, filters with these conditions, and transformations whose code
 * has these hashes.
 */
export const catalogFor = (
  steps: ReadonlyArray<Schema.Json>,
  saved: ReadonlyMap<string, SavedContent> = new Map(),
  filters: ReadonlyMap<string, Schema.Json> = new Map(),
  codes: ReadonlyMap<string, string> = new Map()
): Effect.Effect<Catalog> =>
  steps.some(namesFormatter) || [...saved.values()].some(({ provider_key }) => provider_key === formatterKey)
    ? Effect.map(formatter, ({ formatterAction }) => catalogOf(saved, filters, codes, formatterAction))
    : Effect.succeed(catalogOf(saved, filters, codes, () => null))

const catalogOf = (
  saved: ReadonlyMap<string, SavedContent>,
  filters: ReadonlyMap<string, Schema.Json>,
  codes: ReadonlyMap<string, string>,
  formats: Catalog["action"]
): Catalog => {
  const named = (name: ActionName) =>
    name.provider_key === formatterKey ? formats({ ...name, provider_account_id: null }) : actionOf(name)
  return {
    action: (action) => (action.provider_key === formatterKey ? formats(action) : inlineActionOf(action)),
    filter: (id) => filters.get(id),
    code: (id) => codes.get(id),
    saved: (id): SavedAction | null => {
      const content = saved.get(id)
      const action = content === undefined ? null : named(content)
      if (content === undefined || action === null) return null
      const called = content.holdsCredentials === true ? stayingAt(content, action) : action
      return { action: called, inputs: content.inputs }
    }
  }
}
