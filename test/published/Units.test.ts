import { expect, it } from "vitest"
import { document, operations, type Schema } from "./Contract.ts"

/**
 * The description of a number with a unit has to name the unit. The document shows the description, and the client's types show it
 * where a member is named.
 */

const quantity =
  /(?:^|_)(?:age|amount|bytes|days|delay|duration|hours|interval|latency|memory|minutes|ms|rate|seconds|size|timeout|ttl|weight|window)(?:_|$)/
const unit = /\b(?:milliseconds?|seconds?|minutes?|hours?|days?|bytes?)\b|`rate_limit_period`|`unit`/i

const isNumber = ({ anyOf = [], type }: Schema): boolean =>
  type === "number" || type === "integer" || anyOf.some(isNumber)

/** A number, or a number with its period: `{requests, period}`. */
const isQuantity = (schema: Schema): boolean =>
  isNumber(schema) || [schema, ...(schema.anyOf ?? [])].some(({ properties }) => properties?.["period"] !== undefined)

type Member = readonly [place: string, name: string, member: Schema]

/** The schemas that a schema consists of, without its members. Each has the suffix that it adds to the path. */
const partsOf = (schema: Schema): ReadonlyArray<readonly [suffix: string, Schema]> => {
  const { additionalProperties, allOf = [], anyOf = [], items, patternProperties = {} } = schema
  const values = Object.values(patternProperties).concat(
    typeof additionalProperties === "object" ? additionalProperties : []
  )
  return [
    ...anyOf.concat(allOf).map((one) => ["", one] as const),
    ...values.map((one) => [".*", one] as const),
    ...(items === undefined ? [] : [["[]", items] as const])
  ]
}

/** Each member that a schema contains, with its path. */
const membersOf = (schema: Schema, place: string): ReadonlyArray<Member> => {
  const own = Object.entries(schema.properties ?? {}).map(([name, member]): Member => [place, name, member])
  const below = own.flatMap(([, name, member]) => membersOf(member, `${place}.${name}`))
  return own.concat(
    below,
    partsOf(schema).flatMap(([suffix, part]) => membersOf(part, `${place}${suffix}`))
  )
}

const contents = operations.flatMap(({ method, path, requestBody, responses }) =>
  [requestBody, ...Object.values(responses)].flatMap((one) =>
    Object.values(one?.content ?? {}).flatMap(({ schema }) => membersOf(schema, `${method} ${path}`))
  )
)
const parameters = operations.flatMap(({ method, parameters, path }) =>
  parameters.map(({ description = "", name, schema }): Member => [
    `${method} ${path}`,
    name,
    { ...schema, description }
  ])
)
const components = Object.entries(document.components.schemas).flatMap(([name, schema]) => membersOf(schema, name))

const quantities = [...components, ...contents, ...parameters].filter(
  ([, name, schema]) => quantity.test(name) && isQuantity(schema)
)

it("Every number with a unit names the unit in its description", () => {
  const found = new Set(quantities.map(([place, name]) => `${place}.${name}`))
  for (const one of [
    "ActionConfig.rate_limit",
    "CatalogAction.rate_limit",
    "DelayStepConfig.amount",
    "DestinationConfig.connect_timeout",
    "DestinationConfig.rate_limit",
    "SourceHealth.rate_limit"
  ]) {
    expect(found).toContain(one)
  }
  const silent = quantities.filter(([, , { description = "" }]) => !unit.test(description))
  expect([...new Set(silent.map(([place, name]) => `${place}.${name}`))]).toEqual([])
})
