import { Schema } from "effect"
import { Id, Name, optional } from "./Members.ts"
import { bodyOf } from "./Resource.ts"
import { workflow } from "./Workflow.ts"

/** The bodies of calls about versions, drafts, copies and checks of a workflow. */

const { fields } = workflow.patch.message

const version = (description: string) =>
  optional(Schema.Int.annotate({ message: "must be a whole number", description }))

/** A draft: the definition without the settings that are not part of it. */
export const draftBody = bodyOf(
  Schema.Struct({
    steps: fields.steps.schema,
    edges: fields.edges,
    run_label: fields.run_label,
    version: version(
      "The version of the workflow that the draft is based on. It must be the current one. By default it is that of the stored draft, or the current one"
    )
  }).annotate({ identifier: "WorkflowDraftWrite" })
)
export type DraftWrite = typeof draftBody.message.Type

const graph = (description: string) => Schema.Array(Schema.Json).annotate({ message: "must be a list", description })

/** A definition that is checked and not stored. Its steps and edges may be anything: what is wrong with them is the answer. */
export const validationBody = bodyOf(
  Schema.Struct({
    steps: graph("The steps, as a save takes them. What is wrong with them is in the answer"),
    edges: optional(graph("The edges, as a save takes them (default: the steps are a chain)")),
    workflow_id: optional(
      Schema.NullOr(Id).annotate({
        description: "The workflow whose definition it would replace (default: it would be that of a new one)"
      })
    )
  }).annotate({ identifier: "WorkflowValidationInput" })
)
export type DefinitionWrite = Pick<typeof validationBody.message.Type, "steps" | "edges">

export const draftExample = { steps: workflow.example.body.steps, edges: workflow.example.body.edges }

export const cloneBody = bodyOf(
  Schema.Struct({
    name: Name,
    source_id: optional(
      Schema.NullOr(Id).annotate({ description: "The source of the copy (default: that of the workflow)" })
    )
  }).annotate({ identifier: "WorkflowClone" })
)

export const publishBody = bodyOf(
  Schema.Struct({
    version: version(
      "Refused when the workflow has another version by now. By default it is the version that the draft is based on"
    )
  }).annotate({ identifier: "WorkflowDraftPublish" })
)

export const restoreBody = bodyOf(
  Schema.Struct({
    version: version("The current version of the workflow: refused when there is a later one")
  }).annotate({ identifier: "WorkflowVersionRestore" })
)

export const maxChecked = 100

export const draftCheckBody = bodyOf(
  Schema.Struct({
    limit: optional(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxChecked })).annotate({
        message: `must be a whole number from 1 to ${maxChecked}`,
        description: `How many requests are tried (default: ${maxChecked})`
      })
    )
  }).annotate({ identifier: "WorkflowDraftCheckInput" })
)
