/** What the `resource_id` of a step names, by the kind of the step. */
const resources = {
  action: "action",
  destination: "destination",
  filter: "filter",
  transformation: "transformation",
  wait: "source",
  workflow: "workflow"
} as const

export type StepResource = (typeof resources)[keyof typeof resources]

/** The resource that a step of this kind names; null if it names none. */
export const resourceOfStep = (kind: unknown): StepResource | null =>
  typeof kind === "string" && Object.hasOwn(resources, kind) ? resources[kind as keyof typeof resources] : null
