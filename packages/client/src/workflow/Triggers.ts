import type { components } from "../schema.ts"
import { type Anything, type Ref, requestPathOf, roots } from "./Reference.ts"

/** What begins runs of a workflow beside requests, and how runs wait for each other, as the builder takes it. */

type Written = NonNullable<components["schemas"]["WorkflowWrite"]["triggers"]>

/** A path to one value of what begins a run, or a reference to it. */
type Key<Body> =
  | string
  | null
  | ((refs: {
      readonly trigger: Ref<{ readonly body: Body; readonly headers: Anything; readonly query: Anything }>
    }) => Ref<string | number | boolean>)

type Keyed<Setting, Body> = Setting extends { readonly key?: unknown }
  ? { readonly [Member in keyof Setting]: Member extends "key" ? Key<Body> : Setting[Member] }
  : Setting

export type Triggers<Body> = { readonly [Name in keyof Written]: Keyed<Written[Name], Body> }

const isKeyed = (setting: unknown): setting is { readonly key: unknown } =>
  typeof setting === "object" && setting !== null && "key" in setting

/** The settings as JSON: a reference becomes its path. */
export const triggersOf = <Body>(settings: Triggers<Body>): object =>
  Object.fromEntries(
    Object.entries(settings).map(([name, setting]: [string, unknown]) => {
      if (!isKeyed(setting) || typeof setting.key !== "function") return [name, setting]
      const refer = setting.key as (refs: Anything) => unknown
      return [name, { ...setting, key: requestPathOf(refer(roots)) }]
    })
  )
