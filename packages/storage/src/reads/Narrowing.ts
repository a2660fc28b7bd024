import type {
  EventNarrowing,
  IgnoredEventNarrowing,
  RequestNarrowing,
  RunBulkNarrowing
} from "@tidegate/model/RecordFilter"
import type { EventFilter } from "./EventPlan.ts"
import type { IgnoredEventFilter } from "./IgnoredEventReads.ts"
import type { RequestFilter } from "./RequestConditions.ts"
import type { ActivityFilter } from "./RunReads.ts"

/*
 * Converts a caller's filters to the form that the statements take. The types require a field for each declared filter; a test
 * requires a condition for each field in lists, counts and plans.
 */

type Fields<Narrowing, Filter> = { readonly [Name in keyof Narrowing]-?: keyof Filter }

const eventFields: Fields<EventNarrowing, EventFilter> = {
  status: "statuses",
  request_id: "requests",
  source_id: "sources",
  connection_id: "connections",
  destination_id: "destinations",
  batch_operation_id: "operation",
  batch_operation_scope: "operationScope",
  is_retry: "isRetry",
  retry_kind: "retryKind",
  error_code: "errorCodes",
  response_status: "answers",
  resolved: "resolved",
  q: "search"
}

const requestFields: Fields<RequestNarrowing, RequestFilter> = {
  status: "status",
  verified: "verified",
  rejection_cause: "rejectionCauses",
  source_id: "sources",
  connection_id: "connections",
  batch_operation_id: "operation",
  is_retry: "isRetry",
  retry_kind: "retryKind",
  q: "search"
}

const ignoredFields: Fields<IgnoredEventNarrowing, IgnoredEventFilter> = {
  cause: "causes",
  request_id: "requests",
  source_id: "sources",
  connection_id: "connections"
}

const filterOf = <Filter>(none: Filter, fields: Readonly<Record<string, keyof Filter>>, narrowing: object): Filter => ({
  ...none,
  ...Object.fromEntries(
    Object.entries(narrowing).flatMap(([name, value]) => {
      const field = fields[name]
      return field === undefined || value === undefined ? [] : [[field, value] as const]
    })
  )
})

const anyEvent: EventFilter = {
  statuses: [],
  sources: [],
  connections: [],
  destinations: [],
  operation: undefined,
  operationScope: "retries",
  search: undefined
}

const anyRequest: RequestFilter = {
  status: undefined,
  verified: undefined,
  sources: [],
  connections: [],
  operation: undefined,
  isRetry: undefined,
  retryKind: undefined,
  search: undefined
}

export const eventFilterOf = (narrowing: EventNarrowing): EventFilter => filterOf(anyEvent, eventFields, narrowing)

/** A request has one status: the filter names all statuses or one. */
export const requestFilterOf = ({ status, ...others }: RequestNarrowing): RequestFilter => ({
  ...filterOf(anyRequest, requestFields, others),
  status: status?.[0]
})

export const ignoredFilterOf = (narrowing: IgnoredEventNarrowing): IgnoredEventFilter =>
  filterOf<IgnoredEventFilter>({ causes: [], requests: [], sources: [], connections: [] }, ignoredFields, narrowing)

export const runFilterOf = ({ source_id, status, workflow_id, ...others }: RunBulkNarrowing): ActivityFilter => ({
  ...others,
  statuses: status ?? [],
  sources: source_id ?? [],
  workflows: workflow_id ?? [],
  search: undefined
})

/** Whether no index finds the events of a filter: a list then examines many rows for the few that match. */
export const isSearch = ({ answers = [], errorCodes = [], resolved, search }: EventFilter): boolean =>
  search !== undefined || resolved !== undefined || answers.length > 0 || errorCodes.length > 0
