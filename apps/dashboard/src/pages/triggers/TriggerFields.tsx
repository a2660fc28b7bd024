import { useQuery } from "@tanstack/react-query"
import type { Row } from "../../gateway.ts"
import { DurationField } from "../../parts/Duration.tsx"
import { ChoiceField, TextField } from "../../parts/Form.tsx"
import { titleOf } from "../../parts/StepGraph.ts"
import { useSession } from "../../session.ts"
import type { TriggerField, TriggerKind } from "./TriggerKind.ts"

export type Members = Readonly<Record<string, unknown>>

type Choices = ReadonlyArray<readonly [value: string, label: string]>

/** The workflows of which a run can begin when one of this workflow fails, and the one that is named now. */
const useOthers = (workflow: string, now: unknown): Choices => {
  const { client, team } = useSession()
  const { data } = useQuery({
    queryKey: ["workflows by status", team],
    queryFn: () => client.get("/workflows", { params: { query: { limit: 255 } } })
  })
  const others = (data?.models ?? []).flatMap(({ id, name, status }) =>
    id !== workflow && (status === "active" || status === "paused" || id === now) ? [[id, name] as const] : []
  )
  // From the beginning, because a select takes its first value from its choices, and they come later.
  return typeof now === "string" && !others.some(([id]) => id === now) ? [[now, now], ...others] : others
}

const Choose = ({ choices, field, name, now }: { readonly choices: Choices } & Field) => (
  <ChoiceField
    name={name}
    label={field.label}
    help={field.help}
    required={field.isOptional !== true}
    defaultValue={typeof now === "string" ? now : ""}
    choices={[["", field.empty ?? "–"], ...choices]}
  />
)

const WorkflowField = ({ workflow, ...field }: { readonly workflow: string } & Field) => (
  <Choose {...field} choices={useOthers(workflow, field.now)} />
)

interface Field {
  readonly name: string
  readonly field: TriggerField
  readonly now: unknown
}

const One = ({ field, name, now, workflow }: Field & { readonly workflow: Row<"Workflow"> }) => {
  const { choices = [], help, isOptional = false, kind, label, max, min } = field
  if (kind === "duration") {
    return (
      <DurationField
        name={name}
        label={label}
        help={help}
        ms={typeof now === "number" ? now : null}
        required={!isOptional}
      />
    )
  }
  if (kind === "workflow") return <WorkflowField field={field} name={name} now={now} workflow={workflow.id} />
  if (kind === "step") {
    const steps = (workflow.steps ?? []).map((step) => [step.id, titleOf(step)] as const)
    return <Choose field={field} name={name} now={now} choices={steps} />
  }
  const written = typeof now === "string" || typeof now === "number" ? String(now) : ""
  if (kind === "choice")
    return <ChoiceField name={name} label={label} help={help} choices={choices} defaultValue={written} />
  return (
    <TextField
      name={name}
      label={label}
      help={help}
      required={!isOptional}
      defaultValue={written}
      {...(kind === "number" ? { type: "number", min: min!, max: max! } : { maxLength: 200 })}
    />
  )
}

/** The fields of one setting. Their names are the paths by which the API names them. */
export const TriggerFields = ({
  kind,
  path,
  values,
  workflow
}: {
  readonly kind: TriggerKind
  readonly path: string
  /** What is stored; null: the setting is new. */
  readonly values: Members | null
  readonly workflow: Row<"Workflow">
}) =>
  kind.fields.map((field) => (
    <One
      key={field.name}
      field={field}
      name={`${path}.${field.name}`}
      now={values === null ? field.fresh : values[field.name]}
      workflow={workflow}
    />
  ))
