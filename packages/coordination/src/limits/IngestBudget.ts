/** The parts of a limit that a lease is at the most, and as long as there is plenty at the least. */
export const largestShare = 8
const smallestShare = 64

/** Doors that had no answer ask again within this time (ms); until then a new owner does not know what they have used by themselves. */
const settlingMs = 2_000

/** What a door says of itself. Its counts are of all that it has ever seen: said twice, they are counted once. */
export interface Report {
  /** One process that takes requests. */
  readonly door: string
  /** What it has accepted. */
  readonly used: number
  /** How much of that an answer has reached it for. */
  readonly told: number
  /** How far it may still go by itself; null: it has never had a lease. */
  readonly reach: number | null
  /** What it expects to need until it asks again. */
  readonly wanted: number
}

/** What a door may accept. */
export interface Lease {
  /** Beyond what it has reported as used. 0: the period has nothing left. */
  readonly budget: number
  /** The same, when it is not answered any more before the period ends: what others do not need is shared by demand. */
  readonly reach: number
  /** Its share of the limit, in each period that begins without an answer. */
  readonly share: number
}

interface Door {
  /** What it has reported. */
  used: number
  /** What it holds beyond that, and what it may go on to by itself. */
  held: number
  reach: number
  wanted: number
  /** What it has wanted of late. */
  demand: number
  heardAt: number
}

/** How much of a door's demand its latest report is. Where a lease is a few requests, one report alone says next to nothing. */
const latest = 1 / 8

/**
 * The limit of one source in one period after the other, given out to doors in leases. What is leased and what is used never
 * come to more than the limit, but for what doors have used without being asked: they go on by themselves where no answer
 * comes, and what they then report is counted. A lease is given up by the next report, by the end of the period, or by silence.
 *
 * Times are milliseconds of one monotonic clock.
 */
export class IngestBudget {
  /** May change: what is leased already stays so. */
  limit: number
  readonly periodMs: number
  readonly leaseMs: number
  #used = 0
  #held = 0
  #settlesAt = Number.NEGATIVE_INFINITY
  #endsAt = Number.NEGATIVE_INFINITY
  readonly #doors = new Map<string, Door>()

  constructor(limit: number, periodMs: number) {
    this.limit = limit
    this.periodMs = periodMs
    this.leaseMs = Math.min(Math.max(periodMs / 6, 1_000), 30_000)
  }

  /** Used or held, of the current period. */
  leased(now: number): number {
    this.#forget(now)
    return this.#used + this.#held
  }

  /** Milliseconds until the period is over; not above 0: none is under way. */
  remaining(now: number): number {
    return this.#endsAt - now
  }

  /** Doors that have a lease. */
  doors(now: number): number {
    this.#forget(now)
    return this.#doors.size
  }

  /** A new period. */
  begin(endsAt: number): void {
    this.#start(endsAt, 0)
  }

  /** A period of an earlier owner. What was leased of it counts as used: nobody knows better. */
  takeOver(endsAt: number, leased: number, now: number): void {
    this.#start(endsAt, leased)
    this.#settlesAt = now + settlingMs
  }

  #start(endsAt: number, used: number): void {
    this.#endsAt = endsAt
    this.#used = used
    this.#settlesAt = Number.NEGATIVE_INFINITY
    this.#held = 0
    for (const door of this.#doors.values()) {
      door.held = 0
      door.reach = 0
    }
  }

  /** Counts what a door reports, and gives it a lease for the one it has. */
  lease({ door: id, reach, told, used, wanted }: Report, now: number): Lease {
    this.#forget(now)
    const known = this.#doors.get(id)
    // What an answer has reached the door for was counted, by an earlier owner where not by this one.
    this.#used = Math.max(0, this.#used + used - Math.max(told, known?.used ?? 0))
    if (known !== undefined) this.#held -= known.held
    const needed = Math.max(1, wanted)
    const before = known?.demand ?? needed
    const demand = before + latest * (needed - before)
    const door: Door = { used, held: 0, reach: 0, wanted: needed, demand, heardAt: now }
    this.#doors.set(id, door)

    const part = door.wanted / this.#sum("wanted")
    const most = Math.min(
      Math.max(door.wanted, Math.ceil(this.limit / smallestShare)),
      Math.ceil(this.limit / largestShare)
    )
    const spare = Math.max(0, this.limit - this.leased(now))
    if (now < this.#settlesAt && reach !== null) {
      // Until all have reported, each goes on by what it was given before: together that is no more than the limit.
      door.reach = Math.min(reach, spare)
      door.held = Math.min(most, door.reach)
    } else {
      // Others do not get what a door was told that it may reach, before that one has heard of them.
      const unreached = this.limit - this.#used - this.#sum("reach")
      door.held = Math.min(most, Math.ceil(spare / (2 * this.#doors.size)))
      // Nor goes one further that is heard of for the first time, since it is not known yet who else has requests, and it may not ask
      // again soon. Of a small limit nobody does: what doors need is a guess of whole requests, and each of them is much.
      const isKnown = known !== undefined && this.limit >= smallestShare
      const further = isKnown ? Math.floor(part * (spare - door.held)) : 0
      door.reach = Math.max(door.held, Math.min(door.held + further, unreached))
    }
    this.#held += door.held
    // At least one: a door that is alone for ever still takes some.
    return {
      budget: door.held,
      reach: door.reach,
      share: Math.max(1, Math.floor((demand / this.#sum("demand")) * this.limit))
    }
  }

  /** Accepts one for somebody who is no door. False: the period has nothing left that no door holds. */
  take(now: number): boolean {
    if (this.leased(now) >= this.limit) return false
    this.#used++
    return true
  }

  #sum(what: "wanted" | "demand" | "reach"): number {
    let sum = 0
    for (const door of this.#doors.values()) sum += door[what]
    return sum
  }

  /** A door that has been silent for as long as a lease lasts is gone, or rests: what it holds is free again. */
  #forget(now: number): void {
    for (const [id, door] of this.#doors) {
      if (now < door.heardAt + this.leaseMs) continue
      this.#held -= door.held
      this.#doors.delete(id)
    }
  }
}
