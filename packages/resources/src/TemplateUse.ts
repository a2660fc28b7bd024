import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { didYouMean } from "@tidegate/model/NearestName"
import type { WorkflowTemplate, WorkflowTemplateDetail } from "@tidegate/model/WorkflowTemplate"
import type { Binding, Template } from "@tidegate/workflows/templates/Template"
import { templateOf, templates } from "@tidegate/workflows/templates/Templates"
import { judgeBody, type Members, orInvalid } from "./Input.ts"
import { Id, Name, setting } from "./Members.ts"
import { ids } from "./ExampleIds.ts"
import type { WorkflowFields } from "./Workflow.ts"

/** Templates of workflows in their shown form, and the workflows that are created from them. */

export { templateOf }

const Bindings = Schema.Record(
  Schema.String,
  Schema.String.annotate({ message: "must be a string" }).check(Characters.upTo(2_048))
).annotate({ message: "must be an object of strings" })

const Message = Schema.Struct({ name: setting(Name), source_id: setting(Id), bindings: setting(Bindings) })

export const templateUseExample = {
  name: "Alert on a failed payment",
  source_id: ids.source,
  bindings: { alerts: ids.destination }
} as const

export const TemplateUse = Schema.Struct({
  name: setting(Name.annotate({ description: "Default: the template's name; unique in the team" })),
  source_id: setting(Id.annotate({ description: "The source that starts its runs; it may be set later" })),
  bindings: setting(
    Schema.Record(Schema.String, Schema.String).annotate({
      description: "Values for the template, by the keys of its `required_connections`"
    })
  )
}).annotate({ identifier: "WorkflowTemplateUse", examples: [templateUseExample] })

const placeOf = { destination: ids.destination, source: ids.source, url: "https://example.com/" } as const

const placeholders = ({ bindings }: Template) =>
  Object.fromEntries(bindings.map(({ key, type }) => [key, placeOf[type]]))

/** A step as a list of templates shows it. */
export const shownStep = ({ action = null, kind, name = "" }: Schema.JsonObject) => {
  const { action_key = null, provider_key = null } = (action ?? {}) as { provider_key?: string; action_key?: string }
  return { name: name as string, kind: kind as string, provider_key, action_key }
}

export const shownTemplate = (template: Template): WorkflowTemplate => ({
  key: template.key,
  origin: "gateway",
  version: template.version,
  name: template.name,
  description: template.description,
  trigger: { provider_key: null, definition_key: null, name: "Webhook" },
  steps: template.graph(placeholders(template)).steps.map(shownStep),
  required_connections: template.bindings.map(({ description, key, type }) => ({ key, type, description })),
  sample: template.sample,
  updated_at: template.updated_at
})

export const shownTemplates = (): ReadonlyArray<WorkflowTemplate> => templates.map(shownTemplate)

/** The same with the workflow that it creates, before any binding is chosen. */
export const detailedTemplate = (template: Template): WorkflowTemplateDetail => {
  const definition = template.graph(Object.fromEntries(template.bindings.map(({ key }) => [key, `<${key}>`])))
  return Object.assign(shownTemplate(template), { definition: { ...definition, run_label: null, triggers: null } })
}

export const templateExample = shownTemplate(templates[0]!)
export const templateDetailExample = detailedTemplate(templates[0]!)

const faultOf = ({ type }: Binding, given: string | undefined): string | null => {
  if (given === undefined) return "is required"
  if (type === "url") return URL.canParse(given) && /^https?:/i.test(given) ? null : "must be an http or https URL"
  return isId(prefixes[type], given) ? null : `must be the id of a ${type}`
}

/** The workflow that a body creates from a template: always a draft. */
export const instantiated = (template: Template, written: Members): Result.Result<WorkflowFields, GatewayError> =>
  Result.flatMap(orInvalid(judgeBody(Message, written, Result.succeed)), ({ bindings, name, source_id }) => {
    const given: { readonly [key: string]: string } = bindings ?? {}
    const known = new Set(template.bindings.map(({ key }) => key))
    const faults = [
      ...template.bindings.flatMap((binding) => {
        const message = faultOf(binding, Object.hasOwn(given, binding.key) ? given[binding.key] : undefined)
        return message === null ? [] : [{ path: `bindings.${binding.key}`, message }]
      }),
      ...Object.keys(given)
        .filter((key) => !known.has(key))
        .map((key) => ({
          path: `bindings.${key}`.slice(0, 120),
          message: `is not a value of the template${didYouMean(key, known)}`
        }))
    ]
    const [first] = faults
    if (first !== undefined) {
      return Result.fail(fail("TEMPLATE_BINDING_INVALID", `${first.path} ${first.message}`, { fields: faults }))
    }
    return Result.succeed({
      name: (name ?? template.name).trim(),
      description: template.description,
      run_label: null,
      source_id: source_id ?? null,
      status: "draft",
      ...template.graph(given),
      version: 1,
      triggers: null
    })
  })
