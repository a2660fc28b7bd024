import { metrics } from "@tidegate/telemetry/Metrics"

/** What a piece of code did to the children that ran it. */
export type Offence = "TIMEOUT" | "MEMORY_LIMIT"

interface Record {
  readonly count: number
  readonly offence: Offence
  /** Milliseconds of the monotonic clock. */
  readonly at: number
  readonly until: number
}

/** Deaths before code is refused. */
const allowed = 3
const firstRefusalMs = 10_000
const longestRefusalMs = 3_600_000
/** Code that has killed no child for so long starts afresh. */
const forgetMs = 2 * longestRefusalMs
const maxRecords = 10_000

/**
 * Keeps count of the code that kills children, for that costs everybody: a process has to be started anew. With its third
 * death a code is refused for 10 s, then tried again; with each further death for twice as long, up to an hour. Two hours
 * without a death and it is forgotten. The count is this process' own: another tries for itself.
 */
export const makeStrikes = (now: () => number = () => performance.now()) => {
  /** In the order of the last death. */
  const records = new Map<string, Record>()

  return {
    /** Why the code is refused at this time, or null. */
    refusal: (key: string): { readonly offence: Offence; readonly count: number; readonly waitMs: number } | null => {
      const record = records.get(key)
      if (record === undefined || record.count < allowed) return null
      const waitMs = record.until - now()
      return waitMs > 0 ? { offence: record.offence, count: record.count, waitMs } : null
    },
    /** A child died of it. */
    strike: (key: string, offence: Offence): void => {
      metrics.sandboxStrikes.at(offence).add()
      const at = now()
      const before = records.get(key)
      const count = before === undefined || at - before.at > forgetMs ? 1 : before.count + 1
      const refusalMs = Math.min(longestRefusalMs, firstRefusalMs * 2 ** Math.max(0, count - allowed))
      records.delete(key)
      records.set(key, { count, offence, at, until: at + refusalMs })
      for (const oldest of records.keys()) {
        if (records.size <= maxRecords) break
        records.delete(oldest)
      }
    }
  }
}
