/**
 * A lease is at most the limit divided by the first number and, while most of the limit is free, at least the limit divided by
 * the second.
 */
export const largestShare = 8
const smallestShare = 64

/**
 * Ingress processes that got no answer ask again within this time (ms). Until then a new owner does not know what they have used
 * on their own.
 */
const reportingMs = 2_000

/** What an ingress process reports. Its counts are totals since it started, so a repeated report is counted once. */
export interface Report {
  /** The id of the ingress process. The names of this member and of `told` are those of the message between processes. */
  readonly door: string
  /** Requests that it has accepted. */
  readonly used: number
  /** How many of those were in a report that has been answered. */
  readonly told: number
  /** How many requests it may still accept without another answer; null: it has never had a lease. */
  readonly reach: number | null
  /** Requests that it expects until its next report. */
  readonly wanted: number
}

/** What an ingress process may accept. */
export interface Lease {
  /** Requests beyond those it has reported as used. 0: the period has nothing left. */
  readonly budget: number
  /** The same, if no further answer arrives before the period ends. Capacity that the others do not need is shared by demand. */
  readonly reach: number
  /** Its part of the limit in each period that begins without an answer. */
  readonly share: number
}

/** What is known of an ingress process. */
interface Reporter {
  /** Requests that it has reported. */
  used: number
  /** Requests that it has leased beyond that, and requests up to which it may go on without an answer. */
  held: number
  reach: number
  wanted: number
  /** The running average of its demand. */
  demand: number
  heardAt: number
}

/**
 * The weight of the latest report in the average demand. Where a lease is a few requests, one report alone says next to nothing.
 */
const latest = 1 / 8

/**
 * The limit of one source, period after period, given to ingress processes in leases. Leased and used requests together never
 * exceed the limit, with one exception: an ingress process that gets no answer goes on by its own share, and its next report is
 * counted. A lease ends with the next report, with the period, or after silence.
 *
 * Times are milliseconds of one monotonic clock.
 */
export class IngestBudget {
  /** May change: what is leased already stays leased. */
  limit: number
  readonly periodMs: number
  readonly leaseMs: number
  #used = 0
  #held = 0
  #reportedBy = Number.NEGATIVE_INFINITY
  #endsAt = Number.NEGATIVE_INFINITY
  readonly #reporters = new Map<string, Reporter>()

  constructor(limit: number, periodMs: number) {
    this.limit = limit
    this.periodMs = periodMs
    this.leaseMs = Math.min(Math.max(periodMs / 6, 1_000), 30_000)
  }

  /** Requests of the current period that are used or leased. */
  leased(now: number): number {
    this.#forget(now)
    return this.#used + this.#held
  }

  /** Milliseconds until the period ends; 0 or less: no period is under way. */
  remaining(now: number): number {
    return this.#endsAt - now
  }

  /** Ingress processes that have a lease. */
  reporters(now: number): number {
    this.#forget(now)
    return this.#reporters.size
  }

  /** Starts a new period. */
  begin(endsAt: number): void {
    this.#start(endsAt, 0)
  }

  /** Continues a period of an earlier owner. All that it leased counts as used: what was really used is not known. */
  takeOver(endsAt: number, leased: number, now: number): void {
    this.#start(endsAt, leased)
    this.#reportedBy = now + reportingMs
  }

  #start(endsAt: number, used: number): void {
    this.#endsAt = endsAt
    this.#used = used
    this.#reportedBy = Number.NEGATIVE_INFINITY
    this.#held = 0
    for (const reporter of this.#reporters.values()) {
      reporter.held = 0
      reporter.reach = 0
    }
  }

  /** Counts a report, and replaces the reporter's lease with a new one. */
  lease({ door: id, reach, told, used, wanted }: Report, now: number): Lease {
    this.#forget(now)
    const known = this.#reporters.get(id)
    // Reports that were answered are counted already, by this owner or an earlier one.
    this.#used = Math.max(0, this.#used + used - Math.max(told, known?.used ?? 0))
    if (known !== undefined) this.#held -= known.held
    const needed = Math.max(1, wanted)
    const before = known?.demand ?? needed
    const demand = before + latest * (needed - before)
    const reporter: Reporter = { used, held: 0, reach: 0, wanted: needed, demand, heardAt: now }
    this.#reporters.set(id, reporter)

    const part = reporter.wanted / this.#sum("wanted")
    const most = Math.min(
      Math.max(reporter.wanted, Math.ceil(this.limit / smallestShare)),
      Math.ceil(this.limit / largestShare)
    )
    const spare = Math.max(0, this.limit - this.leased(now))
    if (now < this.#reportedBy && reach !== null) {
      // Until all have reported, each continues with its earlier lease: together those are within the limit.
      reporter.reach = Math.min(reach, spare)
      reporter.held = Math.min(most, reporter.reach)
    } else {
      // What an ingress process was allowed to reach is not given to others before it has reported.
      const unreached = this.limit - this.#used - this.#sum("reach")
      reporter.held = Math.min(most, Math.ceil(spare / (2 * this.#reporters.size)))
      // The reach of a process that reports for the first time is no larger than its lease: it is not known yet which others have
      // requests, and it may not ask again soon. The same holds for a small limit, because demand is an estimate in whole
      // requests, and each of them is a large part of such a limit.
      const isKnown = known !== undefined && this.limit >= smallestShare
      const further = isKnown ? Math.floor(part * (spare - reporter.held)) : 0
      reporter.reach = Math.max(reporter.held, Math.min(reporter.held + further, unreached))
    }
    this.#held += reporter.held
    // At least one, so that an ingress process that stays without an answer still accepts some.
    return {
      budget: reporter.held,
      reach: reporter.reach,
      share: Math.max(1, Math.floor((demand / this.#sum("demand")) * this.limit))
    }
  }

  /** Accepts one request that does not come through an ingress process. False: everything of the period is used or leased. */
  take(now: number): boolean {
    if (this.leased(now) >= this.limit) return false
    this.#used++
    return true
  }

  #sum(what: "wanted" | "demand" | "reach"): number {
    let sum = 0
    for (const reporter of this.#reporters.values()) sum += reporter[what]
    return sum
  }

  /** An ingress process that is silent for as long as a lease lasts has ended or is idle: its lease is free again. */
  #forget(now: number): void {
    for (const [id, reporter] of this.#reporters) {
      if (now < reporter.heardAt + this.leaseMs) continue
      this.#held -= reporter.held
      this.#reporters.delete(id)
    }
  }
}
