import { resolve } from "node:path"
import { expect, it } from "vitest"
import { shownTemplate } from "@tidegate/resources/TemplateUse"
import { templates } from "@tidegate/workflows/templates/Templates"
import { page, table } from "./Markdown.ts"

/** `docs/templates.md` is generated from the templates; `npm test -- test/published -u` writes it. */

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
    `Example of a request body that it can process: ${code(JSON.stringify(sample))}.`
  ]
}

const templatesPage = (): Promise<string> =>
  page([
    "# Workflow templates",
    "Templates are workflows to start from. Each one needs only the gateway itself and its bindings. `POST /workflow-templates/{key}/instantiate` with `bindings` makes a workflow from it: a draft that belongs to the team and is independent of the template from then on. `name` is unique in the team (default: the name of the template); `source_id` can be set later. A binding that is missing or of the wrong kind returns 422 `TEMPLATE_BINDING_INVALID`. A team can [save workflows of its own as templates](workflow-operations.md#templates-of-your-own); they are in the same list. [The tutorial](tutorial-workflow.md) starts with a template. This page is generated from the templates; `npm test -- test/published -u` writes it.",
    ...templates.flatMap(sectionOf)
  ])

it("The page docs/templates.md, which -u writes, matches the templates", async () => {
  const file = resolve(import.meta.dirname, "../../docs/templates.md")
  await expect(await templatesPage()).toMatchFileSnapshot(file)
})
