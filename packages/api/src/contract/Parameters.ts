import { Schema, SchemaTransformation } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { BulkBucket } from "@tidegate/model/BulkOperation"
import { EventStatus } from "@tidegate/model/Event"
import { LogLevel } from "@tidegate/model/Execution"
import { eventMeasures, Granularity, requestMeasures } from "@tidegate/model/Metrics"
import { maxValues } from "@tidegate/model/BodyLimits"
import * as Declared from "@tidegate/model/RecordFilter"
import { ShareStatus } from "@tidegate/model/Share"
import { WorkflowStatus } from "@tidegate/model/Workflow"
import { RunStatus } from "@tidegate/model/WorkflowRun"
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

const text = (description: string, maximum = 200) =>
  Schema.optionalKey(Schema.String.check(Characters.upTo(maximum)).annotate({ description }))

const values = (description: string, item: Schema.Top = Schema.String, example?: string) =>
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

const flag = (description: string, byDefault?: boolean) =>
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
  said: string
) =>
  Schema.optionalKey(
    Schema.String.check(Characters.upTo(200), written).pipe(
      describedAs(
        Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })).annotate({
          description: `Rows in a page; ${said}more than ${maximum} is taken as ${maximum}`,
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

/** For the lists of document 1: a limit below one is an error. */
const limit = (maximum: number, byDefault: number) =>
  limitBetween(Schema.isPattern(/^[0-9]+$/, notALimit), { least: 0, maximum, byDefault }, "")

/** For the lists of document 2: a limit outside the range is moved to its nearest bound. */
const clamped = (maximum: number, byDefault: number) =>
  limitBetween(
    Schema.isPattern(/^-?[0-9]+$/, notWhole),
    { least: 1, maximum, byDefault },
    "less than 1 is taken as 1, "
  )

/** Case does not matter. */
const direction = (byDefault: "asc" | "desc") =>
  Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^(?:asc|desc)$/i, { message: "must be asc or desc" })).pipe(
      describedAs(
        Schema.Literals(["asc", "desc"]).annotate({ description: "The order of the list", default: byDefault })
      )
    )
  )
const dir = direction("desc")

const orderBy = (byDefault: "name" | "created_at") =>
  Schema.optionalKey(
    Schema.Literals(["name", "created_at", "updated_at"]).annotate({
      description: "What the list is ordered by",
      default: byDefault
    })
  )

const team = { team_id: text("The team to act on, when there is no x-team-id header") }

const moment = (description: string, byDefault?: string, example?: string) =>
  Schema.optionalKey(
    Schema.String.check(Characters.upTo(60)).annotate({
      description: `${description}: ISO 8601, now, or now-<n><s|m|h|d>`,
      ...(byDefault === undefined ? {} : { default: byDefault }),
      ...(example === undefined ? {} : { examples: [example] })
    })
  )

const window = {
  from: moment("Start of the window; a day before its end unless told"),
  to: moment("End of the window", "now"),
  start: moment("Alias of from"),
  end: moment("Alias of to")
}

const search = {
  q: text("Looks for this in ids and further fields"),
  search: text("Alias of q"),
  search_term: text("Alias of q")
}

const cursor = { cursor: text("next_cursor of the page before", 2000), next: text("Alias of cursor", 2000) }

type Aliases<Filter> = Filter extends { readonly aliases: ReadonlyArray<infer Alias extends string> } ? Alias : never
type Read<Filter> = Filter extends Declared.Flag
  ? boolean
  : Filter extends Declared.Text | Declared.Word
    ? string
    : Filter extends { readonly atMost: 1 }
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
      return declared.atMost === 1
        ? Schema.optionalKey(Schema.Literals(declared.words).annotate({ description }))
        : values(description, Schema.Literals(declared.words))
    default:
      return values(description)
  }
}

/** The parameters of declared filters, under all of their names. */
const filtered = <const Filters extends Declared.RecordFilters>(filters: Filters) =>
  Object.fromEntries(
    Declared.namesOf(filters).map(([name, own, declared]) => [
      name,
      parameterOf(declared, name === own ? declared.description : `Alias of ${own}`)
    ])
  ) as unknown as FilterParameters<Filters>

const connection = { connection_id: values("Connections"), webhook_id: values("Alias of connection_id") }

export const onlyTeam = team

const listed = {
  ...team,
  id: values("Only these"),
  ids: values("Alias of id"),
  name: text("Exactly this name"),
  order_by: orderBy("created_at"),
  dir,
  limit: limit(255, 100)
}

/** Lists of resources that can be disabled. */
export const switchable = { ...listed, include_disabled: flag("false leaves out what is disabled", true) }

export const actions = { ...switchable, limit: clamped(255, 100) }

/** Lists of sources, destinations and connections. */
export const resources = { ...listed, type: text("Only this type"), include_disabled: switchable.include_disabled }

export const workflows = {
  ...listed,
  order_by: Schema.optionalKey(
    Schema.Literals(["name", "created_at", "updated_at"]).annotate({
      description: "What the list is ordered by",
      default: "updated_at"
    })
  ),
  ...search,
  limit: clamped(255, 100),
  status: values("Of these states", WorkflowStatus),
  source_id: values("Of these sources")
}

export const workflowRuns = {
  ...team,
  ...window,
  ...cursor,
  from: moment("Start of the window; unless told all there are"),
  status: values("Of these states", RunStatus),
  limit: clamped(255, 100)
}

export const workflowRunPath = {
  ...pathOf("workflow"),
  runId: Id.annotate({ description: "The run's id", examples: [ids.workflowRun] })
}

export const workflowRun = {
  ...team,
  include_previews: flag("Shows what began the run, and what its steps were given and gave, without secrets", false)
}

export const workflowActivity = {
  ...team,
  ...window,
  q: text("Looks for this in request ids and in the names of workflows and sources, in either case"),
  search: text("Alias of q"),
  source_id: values("Only runs of these sources"),
  source: values("Alias of source_id"),
  status: values("Of these states", RunStatus),
  limit: clamped(100, 100)
}

export const transformations = {
  ...listed,
  include_counts: flag("Counts executions and connections; without it they are shown as zeros", false),
  include_metrics: flag("Alias of include_counts")
}

/** Default order: by name. */
export const filters = { ...listed, order_by: orderBy("name"), dir: direction("asc"), limit: clamped(255, 100) }

export const executions = {
  ...team,
  ...window,
  ...cursor,
  log_level: values("Only those whose highest line is of these", LogLevel),
  limit: limit(255, 100)
}

export const executionPath = {
  ...pathOf("transformation"),
  executionId: Id.annotate({ description: "The execution's id", examples: [ids.execution] })
}

/** An execution's id contains its time, so it is found at once: the parameter is accepted and not needed. */
export const execution = { ...team, request_id: text("The request that it ran for; not needed") }

export const connections = {
  ...resources,
  source_id: values("Only connections of these sources"),
  destination_id: values("Only connections to these destinations"),
  paused: flag("Only paused (true) or only unpaused (false) connections")
}

const requestFilters = { ...team, ...window, ...filtered(Declared.requestFilters) }

export const requests = {
  ...requestFilters,
  ...cursor,
  limit: limit(100, 100),
  include: values("What to show of each row beyond its record", Schema.Literals(["data", "event_summary"]))
}

export const requestCount = requestFilters

export const bin = { limit: limit(100, 100), cursor: text("next_cursor of the page before", 2000) }

const eventFilters = { ...team, ...window, ...filtered(Declared.eventFilters) }

export const events = {
  ...eventFilters,
  ...cursor,
  after: text("Follows events as they are stored, without loss: now, or next_cursor of the page before", 2000),
  limit: limit(100, 100),
  include: values("What to show of each row beyond its record", Schema.Literal("data"))
}

export const eventCount = eventFilters

export const ignoredEventCount = { ...team, ...window, ...filtered(Declared.ignoredEventFilters) }

export const ignoredEvents = { ...ignoredEventCount, ...cursor, limit: limit(100, 100) }

const bucket = (description: string) => Schema.optionalKey(BulkBucket.annotate({ description }))

export const bulkOperations = {
  ...team,
  bucket: bucket("Only those that are not at their end (ongoing), or that are (history)"),
  view: bucket("Alias of bucket"),
  limit: limit(255, 100)
}

/** For lists without a link to the previous page. */
const onward = { cursor: text("next of the page before", 2000), next: text("Alias of cursor", 2000) }

export const requestEvents = {
  ...team,
  ...onward,
  ...connection,
  id: values("Only these"),
  status: values("Only events of these states", EventStatus),
  source_id: values("Only events of these sources"),
  destination_id: values("Only events to these destinations"),
  limit: limit(255, 100)
}

export const requestIgnoredEvents = {
  ...team,
  ...onward,
  ...connection,
  id: values("Only these"),
  limit: limit(255, 100)
}

export const attempts = {
  ...team,
  ...window,
  ...search,
  ...cursor,
  prev: text("prev of the page after", 2000),
  event_id: values("Only attempts of these events"),
  request_id: text("Only attempts of this request"),
  destination_id: values("Only attempts to these destinations"),
  status: Schema.optionalKey(
    Schema.Literals(["SUCCESSFUL", "FAILED"]).annotate({ description: "Only those that ended so" })
  ),
  ...filtered(Declared.attemptFilters),
  order_by: Schema.optionalKey(
    Schema.Literal("created_at").annotate({ description: "What the list is ordered by", default: "created_at" })
  ),
  dir,
  limit: limit(255, 100)
}

export const fixtures = {
  ...team,
  ...search,
  source_id: values("Only fixtures of these sources"),
  limit: limit(255, 100)
}

export const shares = {
  ...team,
  ...onward,
  cursor: cursor.cursor,
  request_id: values("Only shares of these requests"),
  status: values("Only those that are so now", ShareStatus),
  limit: limit(255, 100)
}

export const attempt = { ...team, request_id: text("Where to look first") }

/** The parameters of any series. The range has no default. It has an alias, so neither name of it can be required on its own. */
export const seriesFields = {
  ...team,
  from: moment("Start of the range, required under one of its names", undefined, "now-30m"),
  to: moment("End of the range, required under one of its names", undefined, "now"),
  start: moment("Alias of from"),
  end: moment("Alias of to"),
  granularity: Schema.optionalKey(
    Granularity.annotate({ description: "How long a bucket is; the finest with at most 300 buckets unless told" })
  ),
  measures: values("Only these measures; all unless told"),
  measure: values("Alias of measures")
}

const measuresOf = (known: ReadonlyArray<string>) => ({
  measures: values("Only these measures; all unless told", Schema.Literals(known)),
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

/** The ids whose last 24 hours are requested; every name is accepted. */
export const summaryOf = <Name extends "source" | "destination" | "transformation" | "connection" | "workflow">(
  name: Name
) =>
  ({
    ...team,
    id: values("Whose rows; required under one of its names", Schema.String, ids[name]),
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
