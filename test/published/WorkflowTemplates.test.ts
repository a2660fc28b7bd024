import { resolve } from "node:path"
import { expect, it } from "vitest"
import { shownTemplate } from "@tidegate/resources/TemplateUse"
import { templates } from "@tidegate/workflows/templates/Templates"
import { page, table } from "./Markdown.ts"

/** `docs/templates.md` is made of the rows, and `npm test -- test/published -u` writes it. */

const code = (text: string): string => `\`${text}\``

const sectionOf = (template: (typeof templates)[number]): ReadonlyArray<string> => {
  const { description, key, name, required_connections, sample, steps, version } = shownTemplate(template)
  const kinds = steps.map(({ action_key, kind, name, provider_key }) => {
    const what = provider_key === null ? kind : `${provider_key}.${action_key}`
    return `${name} (${code(what)})`
  })
  return [
    `## ${name}`,
    `${code(key)}, version ${version}. ${description}`,
    table(
      ["Binding", "Is", ""],
      required_connections.map(({ description, key, type }) => [
        code(key),
        type === "url" ? "a URL" : `a ${type}`,
        description
      ])
    ),
    `Steps: ${kinds.join(" → ")}.`,
    `A request that goes through it has a body like ${code(JSON.stringify(sample))}.`
  ]
}

const templatesPage = (): Promise<string> =>
  page([
    "# Templates of workflows",
    "Workflows to begin with. Each needs nothing but what comes with the gateway, and what it is bound to: `POST /workflow-templates/{key}/instantiate` with `bindings` makes a workflow of it, a draft that belongs to the team and has nothing to do with the template from then on. `name` is the template's own unless told, and unique in the team; `source_id` may come later. A binding that is missing or of another kind is answered 422 `TEMPLATE_BINDING_INVALID`. [The tutorial](tutorial-workflow.md) begins with one. The page is made of the templates; `npm test -- test/published -u` writes it.",
    ...templates.flatMap(sectionOf)
  ])

it("docs/templates.md, which -u writes, is what the templates say", async () => {
  const file = resolve(import.meta.dirname, "../../docs/templates.md")
  await expect(await templatesPage()).toMatchFileSnapshot(file)
})
