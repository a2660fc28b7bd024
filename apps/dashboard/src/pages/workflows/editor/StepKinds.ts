import { type Document, objectOf, resolved, type Schema } from "../../../parts/Schema.ts"
import type { Step } from "../../../parts/StepGraph.ts"

/** What the editor knows of the kinds of steps. All of it is read from the API's document, so a new kind needs no line here. */

const formsOf = (document: Document): ReadonlyArray<Schema> =>
  (resolved(document, { $ref: "WorkflowStep" }).anyOf ?? []).map((form) => resolved(document, form))

/** The names of a kind: its own first, then an older one. */
const namesOf = (document: Document, form: Schema): ReadonlyArray<string> =>
  resolved(document, form.properties?.["kind"] ?? {}).enum ?? []

/** Every kind of step that the API has, by its own name. */
export const kindsOf = (document: Document): ReadonlyArray<string> =>
  formsOf(document).flatMap((form) => namesOf(document, form)[0] ?? [])

const formOf = (document: Document, kind: string): Schema =>
  formsOf(document).find((form) => namesOf(document, form).includes(kind)) ?? {}

/** A member of a step of this kind. A member that may be null is what it is otherwise. */
const memberOf = (document: Document, kind: string, name: string): Schema => {
  const member = resolved(document, formOf(document, kind).properties?.[name] ?? {})
  const whole = (member.anyOf ?? [member]).find(({ type }) => type !== "null") ?? member
  return { ...whole, ...(member.description === undefined ? {} : { description: member.description }) }
}

/** The schema of a kind's settings. */
export const configOf = (document: Document, kind: string): Schema => {
  const { properties = {} } = formOf(document, kind)
  return objectOf(document, resolved(document, properties["config"] ?? {}))
}

/** The schema of the inputs of a kind's steps; null: they take none. */
export const inputsOf = (document: Document, kind: string): Schema | null => {
  const inputs = memberOf(document, kind, "invocation_inputs")
  return inputs.type !== "object" || inputs.maxProperties === 0 ? null : inputs
}

/** The lists of resources, by the beginning of their ids. */
const lists = {
  act: "actions",
  des: "destinations",
  flt: "filters",
  src: "sources",
  trs: "transformations",
  wfl: "workflows"
} as const

export type ResourceList = (typeof lists)[keyof typeof lists]

/** The list of the resources that a kind's steps refer to; null: they refer to none. */
export const resourcesOf = (document: Document, kind: string): ResourceList | null => {
  const { pattern = "" } = memberOf(document, kind, "resource_id")
  const [, prefix = ""] = /^\^([a-z]+)_/.exec(pattern) ?? []
  return Object.hasOwn(lists, prefix) ? lists[prefix as keyof typeof lists] : null
}

const textsIn = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : []

/** The ports that edges of a step can begin at. `error` exists if the step branches on errors. */
export const portsOf = (document: Document, step: Step | undefined): ReadonlyArray<string> => {
  if (step === undefined) return ["out"]
  const config = (step.config ?? {}) as Readonly<Record<string, unknown>>
  const { "x-ports": ports = ["out"] } = formOf(document, step.kind)
  const own = (): ReadonlyArray<string> => {
    if (!("by" in ports || "each" in ports)) return ports
    if ("by" in ports) {
      const value = config[ports.by]
      // Until it is chosen, those that it has in any case.
      return typeof value === "string" && Object.hasOwn(ports.of, value) ? ports.of[value]! : ["out"]
    }
    const elements = config[ports.each]
    const members = Array.isArray(elements) ? (elements as ReadonlyArray<Readonly<Record<string, unknown>> | null>) : []
    return textsIn(members.map((one) => one?.[ports.key])).map((key) => `${ports.prefix}${key}`)
  }
  return config["on_error"] === "branch" ? [...own(), "error"] : own()
}
