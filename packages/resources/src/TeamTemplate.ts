import { Schema } from "effect"
import { prefixes } from "@tidegate/model/Ids"
import type { WorkflowTemplate, WorkflowTemplateDetail } from "@tidegate/model/WorkflowTemplate"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import type { Template } from "@tidegate/workflows/templates/Template"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { shownGraph } from "@tidegate/workflows/StepCredentials"
import { at, ids } from "./ExampleIds.ts"
import { DescriptionUpTo, Id, Name, optional } from "./Members.ts"
import { bodyOf } from "./Resource.ts"
import { templateDetailExample } from "./TemplateUse.ts"

/** Templates that a team has saved from its workflows. Their steps name resources of the team, so they have no bindings. */

/** The most bytes of the definitions of a team's templates together. */
export const maxTemplateBytes = 16 * 1024 * 1024

const longestDescription = 1_000

export const templateSaveBody = bodyOf(
  Schema.Struct({
    name: Name.annotate({ description: "Unique among the templates of the team" }),
    description: optional(
      DescriptionUpTo(longestDescription).annotate({ description: "For display. Default: that of the workflow" })
    ),
    workflow_id: Id.annotate({ description: "The workflow that the template is made of" }),
    draft: optional(
      Schema.Boolean.annotate({
        message: "must be true or false",
        description: "Whether the draft of the workflow is taken instead of its current version. Default: false"
      })
    )
  }).annotate({ identifier: "WorkflowTemplateSave" })
)
export type TemplateSave = typeof templateSaveBody.message.Type

export const templateSaveExample = {
  name: "Paid orders of a shop",
  description: "Sends the paid orders of one shop to the CRM.",
  workflow_id: ids.workflow
} as const

/** A template of a team without its definition. */
export interface TeamTemplateOutline {
  readonly id: string
  readonly name: string
  readonly description: string
  /** Its steps as a list shows them. */
  readonly outline: WorkflowTemplate["steps"]
  readonly created_at: Date
}

export interface TeamTemplate extends TeamTemplateOutline {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly run_label: string | null
  readonly triggers: WorkflowTriggers | null
}

export const shownTeamTemplate = ({
  created_at,
  description,
  id,
  name,
  outline
}: TeamTemplateOutline): WorkflowTemplate => ({
  key: id,
  origin: "team",
  version: 1,
  name,
  description,
  trigger: templateDetailExample.trigger,
  steps: outline,
  required_connections: [],
  sample: null,
  updated_at: created_at.toISOString()
})

/** The same with the workflow that it creates. Credentials in it are masked. */
export const detailedTeamTemplate = (template: TeamTemplate): WorkflowTemplateDetail => {
  const { run_label, triggers } = template
  const definition = { ...shownGraph(template), run_label, triggers }
  return Object.assign(shownTeamTemplate(template), { definition: definition as never })
}

/** The template in the form of those of the gateway, as it is stored. */
export const asTemplate = ({ created_at, description, edges, id, name, steps }: TeamTemplate): Template => ({
  key: id,
  version: 1,
  updated_at: created_at.toISOString(),
  name,
  description,
  bindings: [],
  sample: null,
  graph: () => ({ steps, edges }) as unknown as ReturnType<Template["graph"]>
})

export const isTeamTemplate = (key: string): boolean => key.startsWith(prefixes.workflowTemplate)

const exampleId = "wft_01kak1zb17k0e6p9n4m2j1h3qr"

export const teamTemplateExample = shownTeamTemplate({
  id: exampleId,
  name: templateSaveExample.name,
  description: templateSaveExample.description,
  outline: [
    { name: "Paid only", kind: "filter", provider_key: null, action_key: null },
    { name: "CRM", kind: "destination", provider_key: null, action_key: null }
  ],
  created_at: new Date(at)
})
