/** A number of calls per window: all of them at once, then one per share of the window. */
export interface Limit {
  /** A word that identifies the limit: all callers with the same name share its counts, and its window is fixed. */
  readonly name: string
  readonly calls: number
  readonly windowMs: number
  /** Number of keys that a process counts separately; the others share one allowance. */
  readonly maxKeys: number
}

/** The result of one call, and what is left. */
export interface Verdict {
  readonly allowed: boolean
  readonly limit: number
  readonly windowMs: number
  readonly remaining: number
  /** Milliseconds until the allowance is full again. */
  readonly resetMs: number
  /** Milliseconds until the next call is allowed; 0 if one is allowed now. */
  readonly retryMs: number
}
