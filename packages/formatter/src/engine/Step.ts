import type { Field } from "./Field.ts"
import type { LinePolicy, Operation } from "./Operation.ts"

/** A step whose options are valid. */
export interface Step {
  readonly operation: Operation
  readonly version: string
  readonly options: Readonly<Record<string, unknown>>
  readonly lines: LinePolicy
  /** The fields whose values are read in every run. */
  readonly inputs: ReadonlyArray<readonly [name: string, field: Field]>
}
