import { Schema, SchemaTransformation } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { BulkBucket } from "@tidegate/model/BulkOperation"
import { eventMeasures, Granularity, requestMeasures } from "@tidegate/model/Metrics"
import { maxValues } from "@tidegate/model/BodyLimits"
import * as Declared from "@tidegate/model/RecordFilter"
import { describedAs } from "@tidegate/resources/DescribedAs"
import { ids } from "./Examples.ts"

/**
 * Path and query parameters, shared by the groups. All of a query is text; the document describes the meaning of each parameter.
 * A list of values is repeated or separated by commas.
 */
export const Id = Schema.String.check(Characters.upTo(100))

/** The id in a path, for one kind of resource. */
export const pathOf = (resource: string, example: string = ids[resource as keyof typeof ids]) => ({
  id: Id.annotate({ description: `The ${resource}'s id`, examples: [example] })
})

export const text = (description: string, maximum = 200) =>
  Schema.optionalKey(Schema.String.check(Characters.upTo(maximum)).annotate({ description }))

export const values = (description: string, item: Schema.Top = Schema.String, example?: string) =>
  Schema.optionalKey(
    Schema.Array(Schema.String.check(Characters.upTo(100 * maxValues)))
      .check(Schema.isMaxLength(maxValues))
      .pipe(
        describedAs(
          Schema.Array(item)
            .check(Schema.isMaxLength(maxValues))
            .annotate({
              description: `${description}; repeat or separate by commas`,
              ...(example === undefined ? {} : { examples: [[example]] })
            })
        )
      )
  )

export const flag = (description: string, byDefault?: boolean) =>
  Schema.optionalKey(
    Schema.Literals(["true", "false"]).pipe(
      describedAs(Schema.Boolean.annotate({ description, ...(byDefault === undefined ? {} : { default: byDefault }) })),
      Schema.decodeTo(
        Schema.Boolean,
        SchemaTransformation.transform({
          decode: (text: "true" | "false") => text === "true",
          encode: (flag: boolean) => (flag ? ("true" as const) : ("false" as const))
        })
      )
    )
  )

const notALimit = { message: "must be a whole number from 1" }
const notWhole = { message: "must be a whole number" }

/** Any number of digits: a limit above the maximum is reduced to it. */
const limitBetween = (
  written: ReturnType<typeof Schema.isPattern>,
  { byDefault, least, maximum }: Readonly<Record<"byDefault" | "least" | "maximum", number>>,
  said: string,
  what = "Rows in a page"
) =>
  Schema.optionalKey(
    Schema.String.check(Characters.upTo(200), written).pipe(
      describedAs(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })).annotate({
          description: `${what}; ${said}more than ${maximum} is taken as ${maximum}`,
          default: byDefault
        })
      ),
      Schema.decodeTo(
        Schema.Int.check(Schema.isGreaterThanOrEqualTo(1, notALimit)),
        SchemaTransformation.transform({
          decode: (text: string) => Math.max(least, Math.min(Number(text), maximum)),
          encode: String
        })
      )
    )
  )

/** Of the lists of document 1: less than a row is a mistake. */
export const limit = (maximum: number, byDefault: number) =>
  limitBetween(Schema.isPattern(/^[0-9]+$/, notALimit), { least: 0, maximum, byDefault }, "")

/** Of the lists of document 2, where what is out of range is taken for what is next to it. */
export const clamped = (maximum: number, byDefault: number, what?: string) =>
  limitBetween(
    Schema.isPattern(/^-?[0-9]+$/, notWhole),
    { least: 1, maximum, byDefault },
    "less than 1 is taken as 1, ",
    what
  )

/** Either case is understood. */
export const direction = (byDefault: "asc" | "desc") =>
  Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(?:asc|desc)$/i, { message: "must be asc or desc" })).pipe(
      describedAs(
        Schema.Literals(["asc", "desc"]).annotate({ description: "The direction of the order", default: byDefault })
      )
    )
  )
export const orderBy = (byDefault: "name" | "created_at" | "updated_at") =>
  Schema.optionalKey(
    Schema.Literals(["name", "created_at", "updated_at"]).annotate({
      description: "The member that orders the list",
      default: byDefault
    })
  )

const team = { team_id: text("The team to act on, if there is no header x-team-id") }

export const moment = (description: string, byDefault?: string, example?: string) =>
  Schema.optionalKey(
    Schema.String.check(Characters.upTo(60)).annotate({
      description: `${description}: ISO 8601, now, or now-<n><s|m|h|d>`,
      ...(byDefault === undefined ? {} : { default: byDefault }),
      ...(example === undefined ? {} : { examples: [example] })
    })
  )

export const window = {
  from: moment("Start of the window. By default it is a day before the end"),
  to: moment("End of the window", "now"),
  start: moment("Alias of from"),
  end: moment("Alias of to")
}

export const search = {
  q: text("Searches ids and further fields for this text"),
  search: text("Alias of q"),
  search_term: text("Alias of q")
}

export const cursor = { cursor: text("next_cursor of the previous page", 2000), next: text("Alias of cursor", 2000) }

type Aliases<Filter> = Filter extends { readonly aliases: ReadonlyArray<infer Alias extends string> } ? Alias : never
type Read<Filter> = Filter extends Declared.Flag
  ? boolean
  : Filter extends Declared.Text | Declared.Word
    ? string
    : Filter extends { readonly maxWords: 1 }
      ? string
      : ReadonlyArray<string>
type Parameter<Filter> = Schema.optionalKey<Schema.Codec<Read<Filter>, string | ReadonlyArray<string>>>

type FilterParameters<Filters extends Declared.RecordFilters> = {
  readonly [Name in keyof Filters]: Parameter<Filters[Name]>
} & {
  readonly [Name in { readonly [F in keyof Filters]: Aliases<Filters[F]> }[keyof Filters]]: Schema.optionalKey<
    Schema.Codec<unknown, string>
  >
}

const parameterOf = (declared: Declared.RecordFilter, description: string): Schema.Top => {
  switch (declared.kind) {
    case "flag":
      return flag(description)
    case "text":
      return text(description)
    case "word":
      return Schema.optionalKey(Schema.Literals(declared.words).annotate({ description }))
    case "words":
      return declared.maxWords === 1
        ? Schema.optionalKey(Schema.Literals(declared.words).annotate({ description }))
        : values(description, Schema.Literals(declared.words))
    default:
      return values(description)
  }
}

/** The parameters of declared filters, under all of their names. */
export const filtered = <const Filters extends Declared.RecordFilters>(filters: Filters) =>
  Object.fromEntries(
    Declared.namesOf(filters).map(([name, own, declared]) => [
      name,
      parameterOf(declared, name === own ? declared.description : `Alias of ${own}`)
    ])
  ) as unknown as FilterParameters<Filters>

export const onlyTeam = team

export const workflowValuePath = {
  ...pathOf("workflow"),
  key: Id.annotate({ description: "The key of the value", examples: ["orders"] })
}

export const workflowRunPath = {
  ...pathOf("workflow"),
  runId: Id.annotate({ description: "The run's id", examples: [ids.workflowRun] })
}

export const workflowRunStepPath = {
  ...workflowRunPath,
  stepId: Id.annotate({ description: "The id of the step in the workflow's graph", examples: ["approved"] })
}

export const workflowRun = {
  ...team,
  include_previews: flag(
    "Returns the request that started the run, and the inputs and outputs of its steps, without secrets",
    false
  )
}

export const executionPath = {
  ...pathOf("transformation"),
  executionId: Id.annotate({ description: "The execution's id", examples: [ids.execution] })
}

/** An execution's id contains its time, so it is found at once: the parameter is accepted and not needed. */
export const execution = { ...team, request_id: text("The request of the execution. Not required") }

export const requestFilters = { ...window, ...filtered(Declared.requestFilters) }

export const requestCount = { ...team, ...requestFilters }

export const bin = { limit: limit(100, 100), cursor: text("next_cursor of the previous page", 2000) }

export const eventFilters = { ...window, ...filtered(Declared.eventFilters) }

export const eventCount = { ...team, ...eventFilters }

export const ignoredEventFilters = { ...window, ...filtered(Declared.ignoredEventFilters) }

export const ignoredEventCount = { ...team, ...ignoredEventFilters }

export const bucket = (description: string) => Schema.optionalKey(BulkBucket.annotate({ description }))

export const attempt = { ...team, request_id: text("The request in which the attempt is searched first") }

/** The parameters of any series. The range has no default. It has an alias, so neither name of it can be required on its own. */
export const seriesFields = {
  ...team,
  from: moment("Start of the range. Required, under one of its names", undefined, "now-30m"),
  to: moment("End of the range. Required, under one of its names", undefined, "now"),
  start: moment("Alias of from"),
  end: moment("Alias of to"),
  granularity: Schema.optionalKey(
    Granularity.annotate({
      description: "Length of a bucket. By default it is the shortest one that gives at most 300 buckets"
    })
  ),
  measures: values("Only these measures. By default all are returned"),
  measure: values("Alias of measures")
}

const measuresOf = (known: ReadonlyArray<string>) => ({
  measures: values("Only these measures. By default all are returned", Schema.Literals(known)),
  measure: values("Alias of measures", Schema.Literals(known))
})

export const requestSeries = {
  ...filtered(Declared.requestFilters),
  ...seriesFields,
  ...measuresOf(requestMeasures)
}

export const eventSeries = {
  ...filtered(Declared.eventFilters),
  ...seriesFields,
  ...measuresOf(eventMeasures)
}

const summaryAlias = values("Alias of id")

/** The ids whose last minutes are requested, of several kinds of resources. */
export const rates = {
  ...team,
  id: values(
    "The ids of sources, connections and destinations. Required, under one of its names",
    Schema.String,
    ids.source
  ),
  ids: summaryAlias
}

/** The ids whose last 24 hours are requested; every name is accepted. */
export const summaryOf = <Name extends "source" | "destination" | "transformation" | "connection" | "workflow">(
  name: Name
) =>
  ({
    ...team,
    id: values("The ids of the resources. Required, under one of its names", Schema.String, ids[name]),
    ids: summaryAlias,
    [`${name}_id`]: summaryAlias,
    [`${name}_ids`]: summaryAlias,
    ...(name === "connection" ? { webhook_id: summaryAlias, webhook_ids: summaryAlias } : {})
  }) as typeof team & {
    readonly [
      alias in
        | "id"
        | "ids"
        | `${Name}_id`
        | `${Name}_ids`
        | (Name extends "connection" ? "webhook_id" | "webhook_ids" : never)
    ]: typeof summaryAlias
  }
