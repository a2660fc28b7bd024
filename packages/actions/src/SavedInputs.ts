import { didYouMean } from "@tidegate/model/NearestName"
import { compilingMapping } from "@tidegate/interpolation/Mapping"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Complaint } from "@tidegate/rules/Decode"
import type { Action } from "@tidegate/workflows/Catalog"
import type { Step } from "@tidegate/workflows/Definition"
import { Result } from "effect"
import type { Inputs } from "./Provider.ts"

/** The names that templates of a saved action can read: it knows no steps. */
const roots = ["trigger", "run", "workflow", "source"]

/** All errors in the inputs that are saved with an action, by input. Resumable, like `compilingMapping`. */
export function* faultsOfInputs(action: Action, inputs: Inputs): Resumable<ReadonlyArray<Complaint>> {
  const names = action.inputs
  const strange = names === null ? [] : Object.keys(inputs).filter((name) => !names.includes(name))
  const mapped = yield* compilingMapping(inputs, roots)
  // For an action that runs in the process, the step's options decide which inputs are allowed.
  const compiled = action.pure ? null : action.compile({ invocation_inputs: inputs, config: {} } as unknown as Step)
  return [
    ...strange.map((path) => ({ path, message: `is no input of this action${didYouMean(path, names ?? [])}` })),
    ...(Result.isFailure(mapped) ? [mapped.failure] : []),
    ...(compiled !== null && Result.isFailure(compiled)
      ? compiled.failure.map(({ field, message }) => ({ path: field.replace(/^invocation_inputs\.?/, ""), message }))
      : [])
  ]
}
