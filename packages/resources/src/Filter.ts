import { Option, Predicate, Result, Schema } from "effect"
import { maxControlBody } from "@tidegate/model/BodyLimits"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { Filter, ListedFilter } from "@tidegate/model/Filter"
import { type ErrorCode, fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { didYouMean } from "@tidegate/model/NearestName"
import { administering, bySessions, reading } from "@tidegate/model/Permission"
import { FilterConditions } from "@tidegate/model/Rule"
import { compileFilter } from "@tidegate/rules/Filter"
import { askedOf, conditionsHash, conditionTargets } from "@tidegate/rules/StoredFilter"
import { Condition, NamedCondition, TextCondition } from "./Condition.ts"
import { describedAs } from "./DescribedAs.ts"
import type { Members } from "./Input.ts"
import { optional, setting } from "./Members.ts"
import { type Body, resource } from "./Resource.ts"
import { ids, times } from "./ExampleIds.ts"

/** The limit of one team. */
export const maxFilters = 500
/** How many of the connections that link a filter are shown with it. */
export const maxFilterConnections = 100

/** A stored filter, validated and complete. */
export interface FilterFields {
  readonly name: string
  readonly conditions: FilterConditions
  readonly hash: string
}

const namePattern = /^[A-Za-z0-9_-]{1,155}$/u

interface Fault {
  readonly code: ErrorCode
  readonly path: string
  readonly message: string
}

/** The operator that a path ends at. */
const operatorAt = (path: string): string | null => /(\$\w+)(?:\[\d+\])*$/.exec(path)?.[1] ?? null

/** All faults, under the code of the first one: a body that is no filter at all comes before the rest. */
export const refusedConditions = (faults: ReadonlyArray<Fault>): GatewayError => {
  const inShape = faults.filter(({ code }) => code === "VALIDATION_ERROR")
  const reported = inShape.length > 0 ? [...inShape, ...faults.filter((fault) => !inShape.includes(fault))] : faults
  const fields = reported.map(({ message, path }) => ({ path, message }))
  const { code, message, path } = reported[0]!
  if (code === "VALIDATION_ERROR") return invalid(fields)
  const more = reported.length === 1 ? "" : ` (and ${reported.length - 1} more, see data.fields)`
  return fail(code, `${path} ${message}${more}`, {
    rule_index: null,
    path,
    operator: operatorAt(path),
    message,
    fields
  })
}

const fault = (code: ErrorCode, path: string, message: string): Result.Result<never, Fault> =>
  Result.fail({ code, path, message })

const shape = (path: string, message: string) => fault("VALIDATION_ERROR", path, message)

const nameOf = (written: unknown): Result.Result<string | undefined, Fault> => {
  if (written === undefined) return Result.succeed(undefined)
  return typeof written === "string" && namePattern.test(written)
    ? Result.succeed(written)
    : fault("INVALID_FILTER_NAME", "name", "must be 1 to 155 letters, digits, underscores and hyphens")
}

const emptyFilter = (path: string) => fault("EMPTY_FILTER", path, `needs one of ${conditionTargets.join(", ")}`)

/** Conditions in their stored form. */
export const judgeConditions = (written: unknown, path = "conditions"): Result.Result<FilterConditions, Fault> => {
  if (written === null) return emptyFilter(path)
  if (!Predicate.isReadonlyObject(written)) return shape(path, "must be an object")
  const unknown = Object.keys(written).find((name) => !(conditionTargets as ReadonlyArray<string>).includes(name))
  if (unknown !== undefined) {
    return fault(
      "RULE_INVALID",
      unknown,
      `is nothing that can be asked about: there are ${conditionTargets.join(", ")}${didYouMean(unknown, conditionTargets)}`
    )
  }
  const conditions = askedOf(written)
  if (Object.keys(conditions).length === 0) return emptyFilter(path)
  return Result.match(compileFilter(conditions), {
    onSuccess: () => Result.succeed(conditions),
    onFailure: ({ message, path }) => fault("RULE_INVALID", path, message)
  })
}

/** Conditions are written in one member, or each in a member of its own. */
const conditionsOf = (body: Members): Result.Result<FilterConditions | undefined, Fault> => {
  const flat = conditionTargets.filter((target) => body[target] !== undefined)
  const { conditions } = body
  if (conditions === undefined) {
    return flat.length === 0
      ? Result.succeed(undefined)
      : judgeConditions(Object.fromEntries(flat.map((target) => [target, body[target]])))
  }
  // A record that is sent back has both.
  const isSame = (target: string) => isSameJson(body[target], (conditions as Members | null)?.[target])
  const beside = flat.find((target) => body[target] !== null && !isSame(target))
  return beside === undefined
    ? judgeConditions(conditions)
    : shape(beside, "and conditions cannot be used together: they are the same setting")
}

interface Patch {
  readonly name?: string
  readonly conditions?: FilterConditions
}

const judge =
  (isWhole: boolean) =>
  (body: Members): Result.Result<never, GatewayError> => {
    const name = nameOf(body["name"])
    const conditions = conditionsOf(body)
    const missing: Array<Fault> = []
    if (isWhole && Result.isSuccess(name) && name.success === undefined) {
      missing.push({ code: "INVALID_FILTER_NAME", path: "name", message: "is required" })
    }
    if (isWhole && Result.isSuccess(conditions) && conditions.success === undefined) {
      missing.push({ code: "EMPTY_FILTER", path: "conditions", message: "are required" })
    }
    const faults = [Result.getFailure(name), Result.getFailure(conditions)].flatMap(Option.toArray)
    if (faults.length + missing.length > 0) return Result.fail(refusedConditions([...faults, ...missing]))
    const written: Patch = {
      ...(Result.isSuccess(name) && name.success !== undefined ? { name: name.success } : {}),
      ...(Result.isSuccess(conditions) && conditions.success !== undefined ? { conditions: conditions.success } : {})
    }
    return Result.succeed(written as never)
  }

const conditions = {
  headers: { "x-env": "prod" },
  body: { type: { $in: ["order.paid", "order.captured"] }, total: { $gte: 100 } }
}

export const example = {
  body: { name: "paid-orders", conditions },
  patch: { conditions: { body: { type: "order.paid" } } },
  record: {
    id: ids.filter,
    team_id: ids.team,
    name: "paid-orders",
    conditions,
    headers: conditions.headers,
    body: conditions.body,
    query: null,
    path: null,
    connections_count: 1,
    sample_connection_id: ids.connection,
    workflow_steps_count: 0,
    connections: [
      {
        id: ids.connection,
        name: "shop-to-orders-api",
        source_id: ids.source,
        destination_id: ids.destination,
        disabled_at: null,
        paused_at: null
      }
    ],
    ...times
  }
} as const

const asked = {
  headers: setting(NamedCondition),
  body: setting(Condition),
  query: setting(NamedCondition),
  path: setting(TextCondition)
}

/** Conditions for the document; `compileFilter` validates what is written. */
export const Conditions = Schema.Struct(asked).annotate({
  identifier: "FilterConditions",
  description: "Conditions on a request. All have to match, and at least one is required.",
  examples: [conditions]
})

const name = Schema.String.check(Schema.isPattern(namePattern)).annotate({
  description: "Letters, digits, underscores and hyphens; unique in the team"
})

const shownConditions = {
  conditions: FilterConditions.pipe(describedAs(Conditions)),
  headers: Filter.fields.headers.pipe(describedAs(Schema.NullOr(NamedCondition))),
  body: Filter.fields.body.pipe(describedAs(Schema.NullOr(Condition))),
  query: Filter.fields.query.pipe(describedAs(Schema.NullOr(NamedCondition))),
  path: Filter.fields.path.pipe(describedAs(Schema.NullOr(TextCondition)))
}

const FilterRecord = Schema.Struct({ ...Filter.fields, ...shownConditions }).annotate({
  identifier: "Filter",
  description: "A stored filter with the connections that link it, at most 100 of them."
})

const Listed = Schema.Struct({ ...ListedFilter.fields, ...shownConditions }).annotate({ identifier: "ListedFilter" })

const WriteMessage = Schema.Struct({ name: Schema.String, conditions: FilterConditions })
const PatchMessage = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  conditions: Schema.optionalKey(FilterConditions)
})

const FilterWrite = Schema.Struct({ name, conditions: optional(Conditions), ...asked }).annotate({
  identifier: "FilterWrite",
  description: "Conditions are required, in `conditions` or as separate members.",
  examples: [example.body]
})
const FilterPatch = Schema.Struct({ name: optional(name), conditions: optional(Conditions), ...asked }).annotate({
  identifier: "FilterPatch",
  description: "Conditions are replaced whole."
})

const write: Body<typeof WriteMessage, typeof FilterWrite> = {
  message: WriteMessage,
  described: FilterWrite,
  judge: judge(true)
}
const patch: Body<typeof PatchMessage, typeof FilterPatch> = {
  message: PatchMessage,
  described: FilterPatch,
  judge: judge(false)
}

const fieldsOf = (name: string, conditions: FilterConditions): FilterFields => ({
  name,
  conditions,
  hash: conditionsHash(conditions)
})

/** Conditions with a name, which rules of connections link. */
export const filter = resource({
  name: "filter",
  plural: "filters",
  prefix: prefixes.filter,
  description: "Named conditions that rules of connections link.",
  permissions: { read: reading, edit: bySessions(administering) },
  said: {
    create: {
      description: 'A rule `{"type": "filter", "filter_id": …}` of a connection links it. At most 500 in a team.'
    },
    list: { description: "Returns pages by cursor, ordered by name unless `order_by` says otherwise." },
    retrieve: { description: "Includes the connections that link it." },
    update: {
      description: "Every connection that links it uses the new conditions for all requests after the answer."
    },
    delete: {
      description: "Rules that link it keep its conditions; `detached_from_filter` names the deleted filter."
    }
  },
  record: FilterRecord,
  listed: Listed,
  deleted: { fields: { detached_connections: Schema.Int }, example: { detached_connections: 1 } },
  write,
  patch,
  create: (input) => Result.succeed(fieldsOf(input.name, input.conditions)),
  change: (input) => (stored: FilterFields) =>
    Result.succeed(fieldsOf(input.name ?? stored.name, input.conditions ?? stored.conditions)),
  columns: { name: "plain", conditions: "json", hash: "plain" },
  switches: [],
  weight: "2 * octet_length(t.conditions::text)",
  largestBody: maxControlBody,
  most: maxFilters,
  limitCode: "FILTER_LIMIT_REACHED",
  errors: { write: ["INVALID_FILTER_NAME", "EMPTY_FILTER", "RULE_INVALID"] },
  example
})
