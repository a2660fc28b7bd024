import type { TriggerKind } from "../TriggerKind.ts"

export const onFailure: TriggerKind = {
  name: "on_failure",
  title: "When a run fails",
  about: "A run of another workflow begins, for example to tell somebody.",
  excludes: [],
  most: 1,
  fields: [
    {
      name: "workflow_id",
      label: "Workflow",
      kind: "workflow",
      fresh: null,
      help: "An active or a paused workflow of the team. If none is chosen here, that of the team begins, if it has one."
    }
  ]
}
