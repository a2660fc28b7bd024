import { Effect, type Schema } from "effect"
import type { AnyResource, ChangeOf, FieldsOf } from "@tidegate/resources/Resource"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import type { StoredRow, Values } from "./Store.ts"

/** Converts the columns of a resource's rows to its fields, and back. `complete`: see `fields` of the store's hooks. */
export const storedFields = <Row extends StoredRow, R extends AnyResource>(
  secrets: Secrets["Service"],
  resource: R,
  complete: (fields: FieldsOf<R>) => FieldsOf<R> = (fields) => fields
) => {
  const columns = Object.entries(resource.columns as { readonly [field: string]: string })
  const sealed = (field: string) => sealedColumn(secrets, resource.plural, field)

  const fieldsOf = Effect.fnUntraced(function* (row: Row): Effect.fn.Return<FieldsOf<R>> {
    const values = row as unknown as Values
    const fields: Record<string, unknown> = {}
    for (const [field, kind] of columns) {
      if (kind === "sealed") fields[field] = yield* sealed(field).show(row, values[field] as string | null)
      else fields[field] = kind === "since" ? values[`${field}_at`] !== null : values[field]
    }
    return complete(fields as FieldsOf<R>)
  })

  const valuesOf = Effect.fnUntraced(function* (
    owner: Owner,
    fields: FieldsOf<R> | ChangeOf<R>,
    before: Row | null,
    at: Date
  ): Effect.fn.Return<Values> {
    const written = fields as unknown as Values
    const stored = before as unknown as Values | null
    const values: Record<string, unknown> = {}
    for (const [field, kind] of columns) {
      const value = written[field]
      if (kind === "json") values[field] = JSON.stringify(value)
      else if (kind === "since") values[`${field}_at`] = value === true ? (stored?.[`${field}_at`] ?? at) : null
      else if (kind === "plain") values[field] = value
      else if (value !== "unchanged") values[field] = yield* sealed(field).seal(owner, value as Schema.JsonObject)
    }
    return values
  })

  return { fieldsOf, valuesOf }
}
