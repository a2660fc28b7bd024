import type { Schema } from "effect"
import { isSameJson } from "@tidegate/json/ExactNumber"
import type { DefinitionChanges } from "@tidegate/model/WorkflowVersion"
import type { Edge, Step } from "./Definition.ts"
import { shownGraph } from "./StepCredentials.ts"

/** What differs between two definitions of a workflow. Steps and edges are matched by their ids, whatever their order. */

export interface Compared {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  /** By name. A member that only one of both has is not compared: an old version does not have all settings. */
  readonly settings: Schema.JsonObject
}

type Part = Schema.JsonObject & { readonly id: string }

const parts = (of: ReadonlyArray<Step | Edge>): ReadonlyMap<string, Part> =>
  new Map(of.map((part) => [part.id, part as unknown as Part]))

const changedMembers = (names: Iterable<string>, before: Schema.JsonObject, after: Schema.JsonObject) =>
  [...new Set(names)].flatMap((name) =>
    isSameJson(before[name] ?? null, after[name] ?? null)
      ? []
      : [{ name, before: before[name] ?? null, after: after[name] ?? null }]
  )

const changesOf = (before: ReadonlyMap<string, Part>, after: ReadonlyMap<string, Part>) => ({
  added: [...after.values()].filter(({ id }) => !before.has(id)),
  removed: [...before.values()].filter(({ id }) => !after.has(id)),
  changed: [...after.values()].flatMap((part) => {
    const old = before.get(part.id)
    if (old === undefined) return []
    const members = changedMembers([...Object.keys(old), ...Object.keys(part)], old, part)
    return members.length === 0 ? [] : [{ id: part.id, members }]
  })
})

/** Credentials that old steps contain are masked. */
export const compare = (before: Compared, after: Compared): DefinitionChanges => {
  const [old, now] = [shownGraph(before), shownGraph(after)]
  const names = Object.keys(before.settings).filter((name) => Object.hasOwn(after.settings, name))
  return {
    steps: changesOf(parts(old.steps), parts(now.steps)),
    edges: changesOf(parts(old.edges), parts(now.edges)),
    settings: changedMembers(names, before.settings, after.settings)
  }
}
