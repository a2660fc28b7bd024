import type { Warning } from "@tidegate/model/Warning"
import { Predicate } from "effect"

/** The faults of a workflow's graph. All are reported at once: the author of a graph wants the whole list. */
export const issueCodes = [
  "STEP_LIMIT_EXCEEDED",
  "EDGE_LIMIT_EXCEEDED",
  "DUPLICATE_STEP_ID",
  "DUPLICATE_EDGE_ID",
  "DUPLICATE_EDGE",
  "EDGE_INVALID",
  "EDGE_SOURCE_UNKNOWN",
  "EDGE_TARGET_UNKNOWN",
  "PORT_UNKNOWN",
  "STEP_WITHOUT_INPUT",
  "GRAPH_CYCLE",
  "STEP_UNREACHABLE",
  "STEP_INVALID",
  "STEP_KIND_UNKNOWN",
  "STEP_KIND_CHANGED",
  "STEP_CONFIG_INVALID",
  "RETRY_INVALID",
  "CONDITION_INVALID",
  "RESOURCE_REQUIRED",
  "RESOURCE_NOT_FOUND",
  "RESOURCE_KIND_MISMATCH",
  "ACTION_UNKNOWN",
  "TEMPLATE_INVALID",
  "TEMPLATE_REFERENCE_UNKNOWN",
  "TEMPLATE_REFERENCE_NOT_UPSTREAM",
  "FORMATTER_CONFIG_INVALID",
  "PATH_KEY_DUPLICATE",
  "PATH_FALLBACK_MULTIPLE",
  "PATH_LIMIT_EXCEEDED"
] as const

export type IssueCode = (typeof issueCodes)[number]

export interface Issue {
  readonly code: IssueCode
  /** Null when the fault belongs to the whole graph or to an edge. */
  readonly step_id: string | null
  readonly edge_id: string | null
  /** A path like `config.paths[0].key`; null for the whole. */
  readonly field: string | null
  readonly message: string
  /** For a cycle: its steps. */
  readonly data?: { readonly step_ids: ReadonlyArray<string> }
}

/** More than a person reads; a nonsense graph must not cause an answer of megabytes. */
const maxIssues = 200

/** Characters of an issue's message and of its places: both contain text of the author. */
const longest = { message: 500, field: 300, id: 96 } as const

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).toWellFormed()}…` : text

/** A text member of something written that may not be a step or an edge at all. */
export const textAt = (written: unknown, member: string): string | null =>
  Predicate.isReadonlyObject(written) && Predicate.isString(written[member]) ? written[member] : null

export const idOf = (written: unknown): string | null => textAt(written, "id")

/** The largest number of reported warnings. */
const maxWarnings = 50

/** Collects the issues of one graph, and its warnings about accepted parts that cannot work as intended. */
export class Issues {
  private readonly found: Array<Issue> = []
  readonly warnings: Array<Warning> = []

  step(code: IssueCode, step_id: string | null, field: string | null, message: string): void {
    this.add({ code, step_id, edge_id: null, field, message })
  }

  edge(code: IssueCode, edge_id: string | null, field: string | null, message: string): void {
    this.add({ code, step_id: null, edge_id, field, message })
  }

  graph(code: IssueCode, message: string, data?: Issue["data"]): void {
    this.add({ code, step_id: null, edge_id: null, field: null, message, ...(data === undefined ? {} : { data }) })
  }

  /** `path` is a place in the definition, like `steps[0].invocation_inputs.body`. */
  warn(code: string, path: string, message: string): void {
    if (this.warnings.length >= maxWarnings) return
    this.warnings.push({ code, message: cut(message, longest.message), path: cut(path, longest.field) })
  }

  get all(): ReadonlyArray<Issue> {
    return this.found
  }

  /** Whether the limit is reached. */
  get isFull(): boolean {
    return this.found.length >= maxIssues
  }

  private add({ edge_id, field, message, step_id, ...issue }: Issue): void {
    if (this.isFull) return
    this.found.push({
      ...issue,
      step_id: step_id?.slice(0, longest.id) ?? null,
      edge_id: edge_id?.slice(0, longest.id) ?? null,
      field: field === null ? null : cut(field, longest.field),
      message: cut(message, longest.message)
    })
  }
}
