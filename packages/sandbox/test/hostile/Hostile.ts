import type { ExecutionErrorCode } from "../../src/Call.ts"

/** A script that means harm, and what it may come to. */
export interface Hostile {
  readonly name: string
  /** The body of its handler, after a first line that answers the probe for what an earlier call left behind. */
  readonly handler?: string
  /** Before `addHandler`, or the whole code when there is no `handler`. */
  readonly code?: string
  /** `ok`: it may end well, with `body` if that is given. */
  readonly ends: ReadonlyArray<ExecutionErrorCode | "ok">
  readonly body?: unknown
  /** What another call may find of it: nothing, unless its code does it again before the probe. */
  readonly probe?: false
}
