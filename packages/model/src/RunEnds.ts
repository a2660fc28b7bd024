/** The error codes of runs that end because of what somebody has decided, and not because something is wrong. */
export const runEnds = {
  cancelled: "RUN_CANCELLED",
  disabled: "WORKFLOW_DISABLED",
  deleted: "WORKFLOW_DELETED"
} as const

const decided: ReadonlySet<string> = new Set(Object.values(runEnds))

interface End {
  readonly status: string
  readonly outcome: string | null
  readonly error: { readonly code: string } | null
}

/** Whether a run that ends like this has failed without anybody having ended it. A step may fail with the code of a run that it has called. */
export const isFailure = ({ error, outcome, status }: End): boolean =>
  status === "failed" && (outcome !== "cancelled" || !decided.has(error?.code ?? ""))
