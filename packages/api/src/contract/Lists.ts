import { Schema } from "effect"
import { AlertStatus } from "@tidegate/model/ChannelAlert"
import { EventStatus } from "@tidegate/model/Event"
import { LogLevel } from "@tidegate/model/Execution"
import { IssueStatus } from "@tidegate/model/Issue"
import { bothWays, linked, listOf, nothing, ordered, totalled, whole, windowed } from "@tidegate/model/Lists"
import * as Declared from "@tidegate/model/RecordFilter"
import { ShareStatus } from "@tidegate/model/Share"
import { WorkflowStatus } from "@tidegate/model/Workflow"
import { RunStatus } from "@tidegate/model/WorkflowRun"
import { at } from "@tidegate/resources/ExampleIds"
import * as Parameters from "./Parameters.ts"

/*
 * The lists of the API, each declared once: what narrows it, how it is ordered, how many rows a page has, and what its answer has beside the members
 * of every list. Its parameters, its cursors, its answer and its example are made of that. The answer is made in `reads/Paging.ts` of the storage.
 */

type Example = Readonly<Record<string, Schema.Json>>

/** What lists have beside the members of every list, with its example. */
interface Shape<Fields extends Schema.Struct.Fields> {
  readonly fields: Fields
  readonly example: Example
}
const shape = <const Fields extends Schema.Struct.Fields>(fields: Fields, example: Example): Shape<Fields> => ({
  fields,
  example
})

const pagination = { order_by: "created_at", dir: "desc", limit: 100 }
const found = { total: 1, total_exact: true, applied_range: { from: "2025-12-31T00:00:00.000Z", to: at } }
const links = { next: null, prev: null }
const window = { ...found, limit: 100, pagination, ...links }
const shapes = {
  plain: shape(nothing, {}),
  ordered: shape(ordered, { pagination }),
  linked: shape(linked, { pagination: { ...pagination, dir: "asc" }, ...links }),
  windowed: shape(windowed, window),
  whole: shape(whole, { ...window, partial: false, unavailable_shard_count: 0 }),
  totalled: shape(totalled, found),
  bothWays: shape(bothWays, { pagination: { ...pagination, ...links } })
}

interface Declaration<Filters extends Schema.Struct.Fields, Beside extends Schema.Struct.Fields> {
  readonly filters: Filters
  readonly beside: Shape<Beside>
  /** Maximum of rows in a page (default: 255). */
  readonly maxRows?: number
  /** Rows in a page by default (100). */
  readonly rows?: number
  /** A limit of less than 1 is taken as 1, as in document 2, and is not refused. */
  readonly clamps?: boolean
}

/** A list. Its cursors are bound to its `name` and to what it is narrowed to. */
export interface List {
  readonly name: string
  readonly maxRows: number
  /** Rows in a page by default (100). */
  readonly rows?: number
}

const list = <
  const Name extends string,
  const Filters extends Schema.Struct.Fields,
  const Beside extends Schema.Struct.Fields
>(
  name: Name,
  { beside, clamps = false, filters, maxRows = 255, rows = 100 }: Declaration<Filters, Beside>
) => ({
  name,
  maxRows,
  rows,
  query: {
    ...Parameters.onlyTeam,
    ...filters,
    ...Parameters.cursor,
    limit: clamps ? Parameters.clamped(maxRows, rows) : Parameters.limit(maxRows, rows)
  },
  answer: <Model extends Schema.Top>(model: Model) => listOf(model, beside.fields),
  example: (model: object) => exampleOf(model, beside.example)
})

const exampleOf = (model: object, beside: Example = {}): Example => ({
  ...beside,
  count: 1,
  next_cursor: null,
  has_more: false,
  models: [model as Example]
})

/** A list that is answered as a whole, and has no pages. */
export const wholeList = {
  query: Parameters.onlyTeam,
  answer: <Model extends Schema.Top>(model: Model) => listOf(model, nothing),
  example: (model: object) => exampleOf(model)
}

/** The default order of a list of resources. */
interface Order {
  readonly by: "name" | "created_at" | "updated_at"
  readonly dir: "asc" | "desc"
}
const newestFirst: Order = { by: "created_at", dir: "desc" }

/** A list of resources. */
export interface ResourceList<Query extends Schema.Struct.Fields = Schema.Struct.Fields> extends List {
  readonly order: Order
  readonly query: Query
  readonly answer: <Model extends Schema.Top>(
    model: Model
  ) => ReturnType<typeof listOf<Model, typeof shapes.ordered.fields>>
  readonly example: (model: object) => Example
}

const resourceList = <const Name extends string, const Filters extends Schema.Struct.Fields>(
  name: Name,
  {
    clamps = false,
    filters,
    order = newestFirst
  }: { readonly filters: Filters; readonly clamps?: boolean; readonly order?: Order }
) => ({
  order,
  ...list(name, {
    beside: shapes.ordered,
    clamps,
    filters: {
      id: Parameters.values("Only these"),
      ids: Parameters.values("Alias of id"),
      name: Parameters.text("Exactly this name"),
      ...filters,
      order_by: Parameters.orderBy(order.by),
      dir: Parameters.direction(order.dir)
    }
  })
})

const switchable = { include_disabled: Parameters.flag("If false, disabled resources are left out", true) }
const typed = { ...switchable, type: Parameters.text("Only this type") }

export const sources = resourceList("sources", { filters: typed })

const runs = { beside: shapes.plain, clamps: true, maxRows: 100, filters: {} }

export const sourceRuns = list("source_runs", runs)

export const sourceActivity = list("source_activity", runs)

export const destinations = resourceList("destinations", { filters: typed })

export const connections = resourceList("connections", {
  filters: {
    ...typed,
    source_id: Parameters.values("Only connections of these sources"),
    destination_id: Parameters.values("Only connections to these destinations"),
    paused: Parameters.flag("Only paused (true) or only unpaused (false) connections")
  }
})

export const transformations = resourceList("transformations", {
  filters: {
    include_counts: Parameters.flag("Counts executions and connections. By default they are zero", false),
    include_metrics: Parameters.flag("Alias of include_counts")
  }
})

export const actions = resourceList("actions", { clamps: true, filters: switchable })

export const filters = resourceList("filters", { clamps: true, order: { by: "name", dir: "asc" }, filters: {} })

export const workflows = resourceList("workflows", {
  clamps: true,
  order: { by: "updated_at", dir: "desc" },
  filters: {
    ...Parameters.search,
    status: Parameters.values("Of these states", WorkflowStatus),
    source_id: Parameters.values("Of these sources")
  }
})

const ofRuns = {
  ...Parameters.filtered(Declared.runFilters),
  started_from: Parameters.moment("Only runs that started at this time or later"),
  started_to: Parameters.moment("Only runs that started at this time or earlier")
}

export const workflowRuns = list("workflow_runs", {
  beside: shapes.totalled,
  clamps: true,
  filters: {
    ...Parameters.window,
    from: Parameters.moment("Start of the window. By default there is none; with text, it is a day before the end"),
    status: Parameters.values("Of these states", RunStatus),
    ...ofRuns
  }
})

export const workflowActivity = list("workflow_activity", {
  beside: shapes.totalled,
  clamps: true,
  maxRows: 100,
  filters: {
    ...Parameters.window,
    q: Parameters.text("Searches request ids and the names of workflows and sources, without regard to case"),
    search: Parameters.text("Alias of q"),
    source_id: Parameters.values("Only runs of these sources"),
    source: Parameters.values("Alias of source_id"),
    status: Parameters.values("Of these states", RunStatus),
    ...ofRuns
  }
})

export const workflowVersions = list("workflow_versions", {
  beside: shapes.plain,
  clamps: true,
  maxRows: 100,
  filters: {}
})

export const executions = list("executions", {
  beside: shapes.windowed,
  filters: {
    ...Parameters.window,
    log_level: Parameters.values("Only executions whose highest log level is one of these", LogLevel)
  }
})

export const requests = list("requests", {
  beside: shapes.whole,
  maxRows: 100,
  filters: {
    ...Parameters.requestFilters,
    include: Parameters.values("Additional data of each row", Schema.Literals(["data", "event_summary"]))
  }
})

export const events = list("events", {
  beside: shapes.windowed,
  maxRows: 100,
  filters: {
    ...Parameters.eventFilters,
    after: Parameters.text(
      "Returns events in the order in which they were stored, without loss. Use now to start, then next_cursor of the previous page",
      2000
    ),
    include: Parameters.values("Additional data of each row", Schema.Literal("data"))
  }
})

export const ignoredEvents = list("ignored_events", {
  beside: shapes.windowed,
  maxRows: 100,
  filters: Parameters.ignoredEventFilters
})

export const attempts = list("attempts", {
  beside: shapes.bothWays,
  filters: {
    ...Parameters.window,
    ...Parameters.search,
    prev: Parameters.text("prev of the following page", 2000),
    event_id: Parameters.values("Only attempts of these events"),
    request_id: Parameters.text("Only attempts of this request"),
    connection_id: Parameters.values("Only attempts of events of these connections"),
    webhook_id: Parameters.values("Alias of connection_id"),
    destination_id: Parameters.values("Only attempts to these destinations"),
    status: Schema.optionalKey(
      Schema.Literals(["SUCCESSFUL", "FAILED"]).annotate({ description: "Only attempts with this outcome" })
    ),
    ...Parameters.filtered(Declared.attemptFilters),
    order_by: Schema.optionalKey(
      Schema.Literal("created_at").annotate({ description: "The member that orders the list", default: "created_at" })
    ),
    dir: Parameters.direction("desc")
  }
})

const connection = {
  connection_id: Parameters.values("Connections"),
  webhook_id: Parameters.values("Alias of connection_id")
}

export const requestEvents = list("request_events", {
  beside: shapes.linked,
  filters: {
    ...connection,
    id: Parameters.values("Only these"),
    status: Parameters.values("Only events with these statuses", EventStatus),
    source_id: Parameters.values("Only events of these sources"),
    destination_id: Parameters.values("Only events to these destinations")
  }
})

export const requestIgnoredEvents = list("request_ignored_events", {
  beside: shapes.linked,
  filters: { ...connection, id: Parameters.values("Only these") }
})

export const bulkOperations = list("bulk_operations", {
  beside: shapes.plain,
  filters: {
    bucket: Parameters.bucket("Only runs that have not finished (ongoing), or that have (history)"),
    view: Parameters.bucket("Alias of bucket")
  }
})

export const fixtures = list("fixtures", {
  beside: shapes.plain,
  filters: { ...Parameters.search, source_id: Parameters.values("Only fixtures of these sources") }
})

export const providerAccounts = list("provider_accounts", { beside: shapes.plain, filters: {} })

export const shares = list("shares", {
  beside: shapes.plain,
  filters: {
    request_id: Parameters.values("Only shares of these requests"),
    status: Parameters.values("Only those that are so now", ShareStatus)
  }
})

export const channelAlerts = list("channel_alerts", {
  beside: shapes.plain,
  clamps: true,
  maxRows: 100,
  rows: 50,
  filters: {
    status: Schema.optionalKey(
      AlertStatus.annotate({
        description: "Only alerts that are active or resolved, or all of them",
        default: "active"
      })
    )
  }
})

export const issues = list("issues", {
  beside: shapes.plain,
  filters: {
    destination_id: Parameters.values("Only issues of these destinations"),
    status: Parameters.values("Only issues that are so now", IssueStatus)
  }
})
