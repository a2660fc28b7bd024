import { Predicate, type Schema } from "effect"

/**
 * A workflow that is written without `edges` is a chain: each step follows the one before. Its edges are stored like written ones.
 * Their ids show that they were not written, so that the workflow stays a chain when its steps are replaced.
 */

interface Graph {
  readonly steps: ReadonlyArray<Schema.Json>
  readonly edges: ReadonlyArray<Schema.Json>
}

const member = (of: Schema.Json | undefined, name: string): Schema.Json | undefined =>
  Predicate.isReadonlyObject(of) && Object.hasOwn(of, name) ? (of as Schema.JsonObject)[name] : undefined

const idOf = (index: number): string => `chain_${index + 1}`

/**
 * The edges of a chain. The check of the graph reports a step without an id; no edge leads to it. A step that undoes another is no
 * part of the chain: it has no edges.
 */
export const chainOf = (steps: ReadonlyArray<Schema.Json>): ReadonlyArray<Schema.JsonObject> => {
  const undoing = new Set(steps.map((step) => member(member(step, "config"), "compensate")))
  const all = steps.map((step) => member(step, "id")).filter((id) => typeof id === "string")
  const ids = all.filter((id) => !undoing.has(id))
  return ids.map((target_step_id, index) => {
    const id = idOf(index)
    return index === 0
      ? { id, source_type: "trigger", target_step_id }
      : { id, source_type: "step", source_step_id: ids[index - 1]!, target_step_id }
  })
}

/** Whether the edges of a stored graph are those that `chainOf` made. */
export const isChain = ({ edges, steps }: Graph): boolean => {
  const chain = chainOf(steps)
  return (
    edges.length === chain.length &&
    edges.every(
      (edge, index) =>
        ["id", "source_type", "source_step_id", "target_step_id"].every(
          (name) => (member(edge, name) ?? null) === (chain[index]![name] ?? null)
        ) &&
        (member(edge, "condition") ?? null) === null &&
        Object.keys((member(edge, "mapping") ?? {}) as object).length === 0
    )
  )
}
