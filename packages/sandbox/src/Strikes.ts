import { metrics } from "@tidegate/telemetry/Metrics"

/** Why the children that ran a code were killed. */
export type Offence = "TIMEOUT" | "MEMORY_LIMIT"

interface Record {
  readonly count: number
  readonly offence: Offence
  /** Milliseconds of the monotonic clock. */
  readonly at: number
  readonly until: number
}

/** Deaths after which code is refused. */
const allowed = 3
const firstRefusalMs = 10_000
const longestRefusalMs = 3_600_000
/** Code that has killed no child for this long starts with a clean record. */
const forgetMs = 2 * longestRefusalMs
const maxRecords = 10_000

/**
 * Counts how often each code kills children, because that costs everybody: a new process has to start. After its third death a code
 * is refused for 10 s, then tried again; after each further death it is refused for twice as long, up to an hour. Two hours without a death
 * reset the count. Each process counts for itself.
 */
export const makeStrikes = (now: () => number = () => performance.now()) => {
  /** In the order of their last death, oldest first. */
  const records = new Map<string, Record>()

  return {
    /** Why the code is refused now, or null. */
    refusal: (key: string): { readonly offence: Offence; readonly count: number; readonly waitMs: number } | null => {
      const record = records.get(key)
      if (record === undefined || record.count < allowed) return null
      const waitMs = record.until - now()
      return waitMs > 0 ? { offence: record.offence, count: record.count, waitMs } : null
    },
    /** Records that a child died of the code. */
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
