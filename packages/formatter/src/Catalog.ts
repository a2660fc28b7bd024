import { createHash } from "node:crypto"
import type { Schema } from "effect"
import type { Field } from "./engine/Field.ts"
import { limits } from "./engine/Limits.ts"
import { charactersOf } from "./engine/Meter.ts"
import type { Operation } from "./engine/Operation.ts"
import type { DataVersions } from "./Versions.ts"
import { engineVersion, supportedVersions } from "./Formatter.ts"
import { categories } from "./Operations.ts"

const fieldOf = ([key, field]: readonly [string, Field]): Schema.JsonObject => {
  const { choices, custom, help, label, lines, mappable, maximum, minimum, required, type } = field
  return {
    key,
    label,
    type,
    mappable,
    required,
    default: field.default,
    line_items: lines,
    choices: choices === null ? null : choices.map((choice) => ({ ...choice })),
    ...(choices === null ? {} : { custom }),
    ...(minimum === null ? {} : { minimum }),
    ...(maximum === null ? {} : { maximum }),
    help
  }
}

const operationOf = (operation: Operation): Schema.JsonObject => {
  const { deterministic, dynamic, errors, fields, lines, output, sample, since, warnings } = operation
  const shownLater = new Set(dynamic.flatMap((one) => one.fields))
  const most = charactersOf(operation)
  return {
    key: operation.key,
    label: operation.label,
    description: operation.description,
    since,
    deterministic,
    line_item_policy: {
      mode: lines,
      fields: Object.entries(fields).flatMap(([name, field]) => (field.lines ? [name] : [])),
      max: limits.line_items,
      by_options: operation.linesFor !== null
    },
    fields: Object.entries(fields)
      .filter(([name]) => !shownLater.has(name))
      .map(fieldOf),
    dynamic_fields: dynamic.map(({ fields: names, when }) => ({
      when: { field: when.field, in: [...when.in] },
      fields: names.map((name) => fieldOf([name, fields[name]!]))
    })),
    limits: { ...(most < limits.string_bytes ? { characters: most } : {}), ...operation.limits },
    warnings: [...warnings],
    errors: [...errors],
    output_schema: output,
    sample: { inputs: sample.inputs, options: sample.options, output: { ...sample.output } }
  }
}

/** All operations with their fields, built from the rows. `catalog_hash` changes whenever anything else in it changes. */
export const catalog = (versions: DataVersions): Schema.JsonObject => {
  const content = {
    engine_version: engineVersion,
    supported_versions: [...supportedVersions],
    data_versions: { ...versions },
    limits: { ...limits },
    categories: categories.map(({ key, label, operations }) => ({
      key,
      label,
      operations: operations.map(operationOf)
    }))
  }
  const catalog_hash = `sha256:${createHash("sha256").update(JSON.stringify(content)).digest("hex")}`
  return { ...content, catalog_hash }
}
