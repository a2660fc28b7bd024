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
      isOptional: true,
      empty: "None, not even that of the team",
      help: "An active or a paused workflow of the team. Without this setting, that of the team begins, if it has one."
    }
  ]
}
