import { EventStatus } from "./Event.ts"
import { IgnoredCause } from "./IgnoredEvent.ts"
import { RequestStatus, RetryKind } from "./Request.ts"
import { RunOutcome, RunStatus } from "./WorkflowRun.ts"

/*
 * The filters of lists of records, each declared once. Lists, counts, series and bulk operations take the same filters under the
 * same names. Storage must have SQL for each of them, otherwise it does not compile.
 */

interface Declared {
  readonly description: string
  readonly aliases?: ReadonlyArray<string>
  /**
   * Whether the filtered value never changes after the record was stored. A feed accepts only such filters: for others the result
   * would depend on the time of the read.
   */
  readonly lasts: boolean
}

/** One or more of these words; case does not matter; repeated or separated by commas. `maxWords`: the largest number of them. */
export interface Words<Word extends string = string> extends Declared {
  readonly kind: "words"
  readonly words: ReadonlyArray<Word>
  readonly maxWords?: number
}

/** One of these words. */
export interface Word<Of extends string = string> extends Declared {
  readonly kind: "word"
  readonly words: ReadonlyArray<Of>
}

/** Ids, repeated or separated by commas. */
export interface Ids extends Declared {
  readonly kind: "ids"
}

/** Codes in capitals; case does not matter; repeated or separated by commas. */
export interface Codes extends Declared {
  readonly kind: "codes"
}

/** Statuses of answers: 500, or 500-599; repeated or separated by commas. */
export interface Answers extends Declared {
  readonly kind: "answers"
}

export interface Flag extends Declared {
  readonly kind: "flag"
}

export interface Text extends Declared {
  readonly kind: "text"
}

export type RecordFilter = Words | Word | Ids | Codes | Answers | Flag | Text
export type RecordFilters = Readonly<Record<string, RecordFilter>>

type Value<F> =
  F extends Words<infer W>
    ? ReadonlyArray<W>
    : F extends Word<infer W>
      ? W
      : F extends Ids | Codes | Answers
        ? ReadonlyArray<string>
        : F extends Flag
          ? boolean
          : string

/** All names of every filter, with the filter's own name. */
export const namesOf = (
  filters: RecordFilters
): ReadonlyArray<readonly [name: string, own: string, declared: RecordFilter]> => {
  const all: Array<readonly [string, string, RecordFilter]> = []
  for (const [own, declared] of Object.entries(filters)) {
    all.push([own, own, declared])
    for (const alias of declared.aliases ?? []) all.push([alias, own, declared])
  }
  return all
}

/** The caller's filter values, under the filters' own names. Absent members do not filter. */
export type Narrowing<Filters extends RecordFilters> = { readonly [Name in keyof Filters]?: Value<Filters[Name]> }

const ids = (description: string, ...aliases: ReadonlyArray<string>) =>
  ({ kind: "ids", description, aliases, lasts: true }) as const satisfies Ids

const q: Text = {
  kind: "text",
  description: "Searches ids and further fields for this text",
  aliases: ["search", "search_term"],
  lasts: true
}

const operation: Text = {
  kind: "text",
  description: "Only records that this bulk operation created",
  aliases: ["bulk_operation_id"],
  lasts: true
}

const retryKind: Word<typeof RetryKind.Type> = {
  kind: "word",
  words: RetryKind.literals,
  description: "Only single retries, or only those of bulk operations",
  lasts: true
}

const isRetry: Flag = { kind: "flag", description: "Only (true) or no (false) retries and replays", lasts: true }

const requestStatus: Words<RequestStatus> & { readonly maxWords: 1 } = {
  kind: "words",
  words: RequestStatus.literals,
  maxWords: 1,
  description: "Only accepted or only rejected requests",
  lasts: true
}

const eventStatus: Words<EventStatus> = {
  kind: "words",
  words: EventStatus.literals,
  description: "Only events with these statuses",
  lasts: false
}

const cause: Words<typeof IgnoredCause.Type> = {
  kind: "words",
  words: IgnoredCause.literals,
  description: "Only ignored events with these causes",
  lasts: true
}

export const requestFilters = {
  status: requestStatus,
  verified: {
    kind: "flag",
    description: "Only requests whose sender was (true) or was not (false) verified",
    lasts: true
  },
  rejection_cause: {
    kind: "codes",
    description: "Only requests that were rejected for these causes",
    lasts: true
  },
  source_id: ids("Only requests of these sources"),
  connection_id: ids("Only requests that were routed to these connections", "webhook_id"),
  batch_operation_id: operation,
  is_retry: isRetry,
  retry_kind: retryKind,
  q
} as const satisfies RecordFilters

export const eventFilters = {
  status: eventStatus,
  request_id: ids("Only events of these requests, of any time unless a window is given"),
  source_id: ids("Only events of these sources"),
  connection_id: ids("Only events of these connections", "webhook_id"),
  destination_id: ids("Only events to these destinations"),
  batch_operation_id: operation,
  batch_operation_scope: {
    kind: "word",
    words: ["retries", "targets", "related"],
    description:
      "Which events of the bulk operation are returned: those that it created (retries, the default), those that it retried (targets), or both (related)",
    lasts: false
  },
  is_retry: isRetry,
  retry_kind: retryKind,
  error_code: { kind: "codes", description: "Only events whose last attempt failed with these codes", lasts: false },
  response_status: {
    kind: "answers",
    description: "Only events whose last response had these statuses: 500, or 500-599",
    lasts: false
  },
  resolved: {
    kind: "flag",
    description: "Only events of which a later retry has (true) or has not (false) succeeded",
    lasts: false
  },
  q
} as const satisfies RecordFilters

export const ignoredEventFilters = {
  cause,
  request_id: ids("Only ignored events of these requests"),
  source_id: ids("Only ignored events of these sources"),
  connection_id: ids("Only ignored events of these connections", "webhook_id")
} as const satisfies RecordFilters

export type RequestNarrowing = Narrowing<typeof requestFilters>
export type EventNarrowing = Narrowing<typeof eventFilters>
export type IgnoredEventNarrowing = Narrowing<typeof ignoredEventFilters>

/** The form of a status of answers, or a range of them. */
export const answerPattern = /^[1-9][0-9]{2}(?:-[1-9][0-9]{2})?$/
/** The form of a code. */
export const codePattern = /^[A-Z][A-Z0-9_]{0,63}$/

/** Lists of attempts have filters of their own beside these. */
export const attemptFilters = {
  error_code: { kind: "codes", description: "Only attempts that failed with these codes", lasts: true },
  response_status: {
    kind: "answers",
    description: "Only attempts whose response had these statuses: 500, or 500-599",
    lasts: true
  }
} as const satisfies RecordFilters

/** Lists of runs have filters of their own beside these. */
export const runFilters = {
  outcome: { kind: "words", words: RunOutcome.literals, description: "Only runs with these outcomes", lasts: false },
  error_code: { kind: "codes", description: "Only runs that failed with these codes", lasts: false },
  error_step_id: { ...ids("Only runs that failed at these steps"), lasts: false },
  label: { kind: "text", description: "Only runs with exactly this label", lasts: false },
  label_prefix: { kind: "text", description: "Only runs whose label begins with this text", lasts: false },
  text: {
    kind: "text",
    description:
      "Only runs with this text in the previews of their steps' inputs, outputs or refused calls, without regard to case. Without a window: the runs of the last 24 hours",
    lasts: false
  }
} as const satisfies RecordFilters

export type RunNarrowing = Narrowing<typeof runFilters>

/** Bulk operations of runs have these filters: those of the list of all workflows' runs, and the workflow. */
export const runBulkFilters = {
  workflow_id: ids("Only runs of these workflows"),
  source_id: ids("Only runs of these sources"),
  status: { kind: "words", words: RunStatus.literals, description: "Only runs with these statuses", lasts: false },
  ...runFilters
} as const satisfies RecordFilters

export type RunBulkNarrowing = Narrowing<typeof runBulkFilters>
