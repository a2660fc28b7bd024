import { engineVersion } from "@tidegate/formatter/Formatter"
import type { Operation } from "@tidegate/formatter/engine/Operation"
import { operations } from "@tidegate/formatter/Operations"
import { formatterAction } from "@tidegate/workflows/actions/FormatterActions"
import type { Schema } from "effect"
import { none } from "../AuthModes.ts"
import type { Provider, ProviderAction } from "../Provider.ts"

/** The formatter's own catalog says what a field accepts besides text: inputs are coerced, and lists are line items. */
const inputOf = ({ elements, fields }: Operation): Schema.JsonObject => {
  const mapped = Object.entries(fields).filter(([, { mappable }]) => mappable)
  const named = Object.entries(elements).flatMap(([list, names]) =>
    names.map((name) => [name, { title: name, description: `In place of ${list}: one of them` }] as const)
  )
  return {
    type: "object",
    properties: Object.fromEntries([
      ...mapped.map(
        ([name, { help, label }]) => [name, { title: label, ...(help === null ? {} : { description: help }) }] as const
      ),
      ...named
    ]),
    // If the elements of a list can be given instead, the operation itself reports that the list is missing.
    required: mapped.flatMap(([name, { required }]) => (required && !Object.hasOwn(elements, name) ? [name] : [])),
    additionalProperties: false
  }
}

const actionOf = (operation: Operation): ProviderAction => {
  const { description, key, label, output, sample } = operation
  const name = { provider_key: "formatter", action_key: key, version: engineVersion, provider_account_id: null }
  return {
    key,
    name: label,
    description,
    category: key.slice(0, key.indexOf(".")),
    version: engineVersion,
    input: inputOf(operation),
    output,
    primary_output: Object.keys(output["properties"] as object)[0] ?? null,
    sample: { inputs: sample.inputs, output: { ...sample.output } },
    rate_limit: null,
    action: formatterAction(name)!,
    call: null
  }
}

/** Its operations run in the process. Their options are in a step's `config.formatter`. */
export const formatter: Provider = {
  key: "formatter",
  name: "Formatter",
  description: "Shapes text, numbers, dates and lists. Options of an operation stand in the step's config.formatter.",
  icon_key: "wand",
  manifest_version: engineVersion,
  auth: [none],
  actions: [...operations.values()].map(actionOf)
}
