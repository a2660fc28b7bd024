import type { Json } from "@tidegate/model/Rule"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { StoredPart } from "@tidegate/storage/workflows/Runs"
import { outputsIn, type Part, progressIn, wholeStep } from "@tidegate/workflows/Progress"

/** The result of an ended run: the output of the last step that succeeded, in the order of the graph. Null: there is none. */
export function* resultIn(parts: ReadonlyArray<StoredPart>): Resumable<Json> {
  const succeeded = new Map<number, boolean>()
  for (const { steps } of parts) {
    for (const [at, step] of Object.entries(progressIn(steps).steps ?? {})) {
      succeeded.set(Number(at), wholeStep(step).status === "succeeded")
    }
    yield
  }
  const last = Math.max(-1, ...Array.from(succeeded, ([at, is]) => (is ? at : -1)))
  for (const { outputs } of parts.toReversed()) {
    const given: Part["outputs"] = yield* outputsIn(outputs)
    const output = given?.[last]?.output
    if (output !== undefined) return output
    yield
  }
  return null
}
