import type { Warning } from "@tidegate/model/Warning"
import { Predicate } from "effect"

/**
 * What is wrong with a workflow's graph. All of them are reported at once: whoever draws a graph wants the list, not the
 * first of it.
 */
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
  /** Null where the graph as a whole, or an edge, is at fault. */
  readonly step_id: string | null
  readonly edge_id: string | null
  /** A path like `config.paths[0].key`; null for the whole. */
  readonly field: string | null
  readonly message: string
  /** Of a circle: the steps of it. */
  readonly data?: { readonly step_ids: ReadonlyArray<string> }
}

/** More than a person reads; a graph of nonsense must not answer with megabytes. */
const maxIssues = 200

/** Characters of what an issue says, and of the places that it names: all are made of what somebody has written. */
const longest = { message: 500, field: 300, id: 96 } as const

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1).toWellFormed()}…` : text

/** A text of something written that may be no step, or edge, at all. */
export const textAt = (written: unknown, member: string): string | null =>
  Predicate.isReadonlyObject(written) && Predicate.isString(written[member]) ? written[member] : null

export const idOf = (written: unknown): string | null => textAt(written, "id")

/** As many warnings are told. */
const maxWarnings = 50

/** Gathers the issues of one graph, and its warnings: of what is taken, and cannot be what its writer meant. */
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

  /** `path` in the definition, like `steps[0].invocation_inputs.body`. */
  warn(code: string, path: string, message: string): void {
    if (this.warnings.length >= maxWarnings) return
    this.warnings.push({ code, message: cut(message, longest.message), path: cut(path, longest.field) })
  }

  get all(): ReadonlyArray<Issue> {
    return this.found
  }

  /** Whether it takes no more. */
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
