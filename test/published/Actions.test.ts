import { join, resolve } from "node:path"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { manifest } from "../../packages/actions/src/Manifest.ts"
import { ActionProviders } from "../../packages/model/src/ActionCatalog.ts"
import { page, table } from "./Markdown.ts"

/** `docs/action-reference.md` is generated from the providers' rows; `npm test -- test/published -u` writes it. */

const { models } = Schema.decodeUnknownSync(ActionProviders)(manifest)

type Provider = (typeof models)[number]
type Action = Provider["actions"][number]

interface Property {
  readonly type?: string
  readonly title?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Property>
}

const code = (value: unknown): string => `\`${JSON.stringify(value)}\``

/** The alternatives of a property without null, which every optional input accepts. */
const partsOf = (property: Property): ReadonlyArray<Property> =>
  property.anyOf?.flatMap(partsOf).filter(({ type }) => type !== "null") ?? [property]

const typeOf = (property: Property): string => {
  const types = partsOf(property).map((part) => part.enum?.map(code).join(" ") ?? part.type ?? "any")
  return [...new Set(types)].join(" or ")
}

const textOf = (property: Property): string =>
  property.description ??
  partsOf(property).find(({ description }) => description !== undefined)?.description ??
  property.title ??
  ""

const inputsOf = ({ input_schema }: Action): string => {
  const required = (input_schema["required"] ?? []) as ReadonlyArray<string>
  const rows = Object.entries((input_schema["properties"] ?? {}) as Record<string, Property>)
  return rows.length === 0
    ? "It has no inputs."
    : table(
        ["Input", "Type", "Meaning"],
        rows.map(([name, property]) => [
          `\`${name}\`${required.includes(name) ? " (required)" : ""}`,
          typeOf(property),
          textOf(property)
        ])
      )
}

const outputOf = ({ output_schema, primary_output }: Action): string => {
  const members = Object.keys((output_schema["properties"] ?? {}) as object).map((name) => `\`${name}\``)
  return `Output: ${members.join(", ")}${primary_output === null ? "" : `; the main one is \`${primary_output}\``}.`
}

const actionOf = (action: Action): ReadonlyArray<string> => [
  `### ${action.provider_key} ${action.key}`,
  action.description.replace(/[^.]$/, "$&."),
  inputsOf(action),
  [
    outputOf(action),
    ...(action.rate_limit === null
      ? []
      : [`At most ${action.rate_limit.requests} calls per ${action.rate_limit.period}.`])
  ].join(" "),
  `${code(action.input_sample)} → ${code(action.output_sample)}`
]

const credentialsOf = ({ auth }: Provider): string =>
  auth.credential_fields.length === 0
    ? ""
    : table(
        ["Credential", "Used by", "Meaning"],
        auth.credential_fields.map(({ help, key, label, modes, required, type }) => [
          `\`${key}\`${required ? " (required)" : ""}`,
          modes.map((mode) => `\`${mode}\``).join(", "),
          [`${label}${type === "secret" ? " (secret)" : ""}`, ...(help === null ? [] : [help])].join(". ")
        ])
      )

const providerOf = (provider: Provider): ReadonlyArray<string> => [
  `## ${provider.name} (\`${provider.key}\`)`,
  provider.description,
  credentialsOf(provider),
  // The formatter's operations have a separate page, with their options.
  ...(provider.key === "formatter"
    ? [`It has ${provider.actions.length} operations: see [the list of operations](formatter-operations.md).`]
    : provider.actions.flatMap(actionOf))
]

it("The page docs/action-reference.md, which -u writes, matches the catalog", async () => {
  const text = await page([
    "# All actions",
    "[Actions](actions.md) explains how actions are called and saved, and how they get credentials. This page is generated from the catalog.",
    ...models.flatMap(providerOf)
  ])
  await expect(text).toMatchFileSnapshot(join(resolve(import.meta.dirname, "../../docs"), "action-reference.md"))
})
