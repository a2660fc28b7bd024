import { limits } from "../Limits.ts"
import type { KeyedRun, Window } from "./Debounce.ts"

/**
 * Which runs are carried out together: those of a key that were made within a time after the first one, which carries them out. A
 * batch that is full closes at once, and the next run opens another one. Pure: it follows the times at which the runs were made.
 */

/** Runs of a batch at most: a step with `for_each` can run for all of them. */
export const largestBatch = limits.iterations
/** Bytes of a batch at most, so that a step can take all of it as an input. A larger request is a batch of its own. */
export const batchBytes = limits.valueLength / 2

export interface BatchLimits {
  readonly max_count: number
  /** How long (ms) after the first run the batch closes at the latest. */
  readonly window_ms: number
}

/** A batch that is open: its first run, and how much it contains. */
export interface OpenBatch extends Window {
  readonly members: number
  readonly bytes: number
}

export interface BatchableRun extends Omit<KeyedRun, "key"> {
  /** Null: the run has no value at the key, so it is a batch of its own. */
  readonly key: string | null
  /** Bytes of what began it. */
  readonly bytes: number
  /** Whether it has opened a batch before. */
  readonly isFirst: boolean
}

export interface Batched {
  /** The open batches of the keys after these runs. Null: there is none. */
  readonly windows: ReadonlyMap<string, OpenBatch | null>
  /** First runs of batches that have closed. */
  readonly begin: ReadonlySet<string>
  /** Runs that are in a batch now, with its first run; a first run is in its own. */
  readonly added: ReadonlyMap<string, string>
}

/** `runs`: in the order of their times, without those that are in the batch of another run. `windows`: as they are stored. */
export const batch = (
  runs: ReadonlyArray<BatchableRun>,
  windows: ReadonlyMap<string, OpenBatch>,
  { max_count, window_ms }: BatchLimits,
  now: number
): Batched => {
  const after = new Map<string, OpenBatch | null>()
  const begin = new Set<string>()
  const added = new Map<string, string>()
  const openOf = (key: string): OpenBatch | null => {
    const known = after.get(key)
    return known === undefined ? (windows.get(key) ?? null) : known
  }
  for (const { bytes, createdAt, id, isFirst, key } of runs) {
    const open = key === null ? null : openOf(key)
    if (key !== null && open?.runId === id) {
      after.set(key, open)
      continue
    }
    if (isFirst || key === null) {
      // Its batch has closed, or it is alone.
      if (!isFirst) added.set(id, id)
      begin.add(id)
      continue
    }
    const isIn = open !== null && createdAt < open.dueAt && open.bytes + bytes <= batchBytes
    if (open !== null && !isIn) begin.add(open.runId)
    const grown: OpenBatch = isIn
      ? { ...open, members: open.members + 1, bytes: open.bytes + bytes }
      : { runId: id, runAt: createdAt, openedAt: createdAt, dueAt: createdAt + window_ms, members: 1, bytes }
    added.set(id, grown.runId)
    const isFull = grown.members >= max_count || grown.bytes >= batchBytes
    if (isFull) begin.add(grown.runId)
    after.set(key, isFull ? null : grown)
  }
  for (const [key, open] of after) {
    if (open === null || open.dueAt > now) continue
    begin.add(open.runId)
    after.set(key, null)
  }
  return { windows: after, begin, added }
}
