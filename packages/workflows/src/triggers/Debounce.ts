/**
 * Which of the runs that came soon after each other is carried out: the last one of a key, once nothing has come for a while. Pure:
 * it follows the times at which the runs were made, so it does not matter when somebody looks.
 */

export interface DebounceTimes {
  /** For how long (ms) nothing may have come. */
  readonly wait_ms: number
  /** How long (ms) after the first run the last one is carried out at the latest. */
  readonly max_wait_ms: number
}

/** The run that stands for its key, and until when it waits for a later one (Unix ms). */
export interface Window {
  readonly runId: string
  /** When this run and the first one were made. */
  readonly runAt: number
  readonly openedAt: number
  readonly dueAt: number
}

export interface KeyedRun {
  readonly id: string
  readonly key: string
  /** Unix ms. */
  readonly createdAt: number
}

export interface Debounced {
  /** The windows of the keys after these runs. Null: there is none. */
  readonly windows: ReadonlyMap<string, Window | null>
  /** Runs that are carried out now. */
  readonly begin: ReadonlySet<string>
  /** Runs that a later one takes the place of, with its id. */
  readonly superseded: ReadonlyMap<string, string>
}

/** `runs`: in the order of their times. `windows`: as they are stored. */
export const debounce = (
  runs: ReadonlyArray<KeyedRun>,
  windows: ReadonlyMap<string, Window>,
  { max_wait_ms, wait_ms }: DebounceTimes,
  now: number
): Debounced => {
  const after = new Map<string, Window | null>()
  const begin = new Set<string>()
  const superseded = new Map<string, string>()
  for (const { createdAt, id, key } of runs) {
    const window = after.get(key) ?? windows.get(key) ?? null
    const windowOf = (openedAt: number): Window => ({
      runId: id,
      runAt: createdAt,
      openedAt,
      dueAt: Math.min(createdAt + wait_ms, openedAt + max_wait_ms)
    })
    if (window === null) {
      after.set(key, windowOf(createdAt))
    } else if (window.runId === id) {
      after.set(key, window)
    } else if (createdAt < window.runAt) {
      // It is read after one that was made later.
      superseded.set(id, window.runId)
      after.set(key, window)
    } else if (window.dueAt <= createdAt) {
      begin.add(window.runId)
      after.set(key, windowOf(createdAt))
    } else {
      superseded.set(window.runId, id)
      after.set(key, windowOf(window.openedAt))
    }
  }
  for (const [key, window] of after) {
    if (window === null || window.dueAt > now) continue
    begin.add(window.runId)
    after.set(key, null)
  }
  return { windows: after, begin, superseded }
}
