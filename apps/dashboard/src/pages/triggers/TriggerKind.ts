import type { Row } from "../../gateway.ts"

export type Triggers = Row<"WorkflowTriggers">
export type TriggerName = keyof Triggers

/** A member of a setting, and the field by which it is written. */
export interface TriggerField {
  readonly name: string
  readonly label: string
  /** What it means, and its bounds. */
  readonly help: string
  readonly kind: "choice" | "duration" | "number" | "step" | "text" | "workflow"
  /** What a new setting has; null: nothing. */
  readonly fresh: string | number | null
  readonly isOptional?: boolean
  /** For a workflow: what the empty choice says. It is stored as null. */
  readonly empty?: string
  readonly choices?: ReadonlyArray<readonly [value: string, label: string]>
  readonly min?: number
  readonly max?: number
}

/** A setting of a workflow's triggers. Each has a file of its own, and a line in `TriggerKinds.ts`. */
export interface TriggerKind {
  readonly name: TriggerName
  readonly title: string
  /** What it does, in a sentence. */
  readonly about: string
  /** Settings with which it cannot be used. */
  readonly excludes: ReadonlyArray<TriggerName>
  /** Settings of which it needs one: without them it has no effect. */
  readonly needsOneOf?: ReadonlyArray<TriggerName>
  /** Only a workflow with a source can have it. */
  readonly needsSource?: boolean
  /** How many of it there can be. Of several, the API has a list. */
  readonly most: number
  readonly fields: ReadonlyArray<TriggerField>
}

const where = "A path to one value in the body, headers or query, for example body.customer.id."

/** The value by which runs belong together. Without it, all of them do. */
export const groupKey = (about: string): TriggerField => ({
  name: "key",
  label: "Key",
  kind: "text",
  fresh: null,
  isOptional: true,
  help: `${where} ${about}`
})

export const neededKey = (about: string): TriggerField => ({ ...groupKey(about), isOptional: false })
