import { randomUUID } from "node:crypto"
import type { KeyDecision, KeyPermission, KeyReason } from "@tidegate/model/ProjectKey"
import type { CountedDecisions } from "@tidegate/storage/teams/KeyAudit"

/** Decisions of one kind within this time (ms), by the UTC clock, are counted together. */
const windowMs = 300_000

/** One decision about a key. */
export interface Decision {
  readonly key: { readonly id: string; readonly team: string }
  readonly route: string
  readonly permission: KeyPermission
  readonly decision: KeyDecision
  readonly reason: KeyReason | null
  /** Whether the key was allowed by it; false for a change of the key itself. */
  readonly isUse: boolean
}

type Count = { -readonly [Name in keyof CountedDecisions]: CountedDecisions[Name] } & { written: number }

/**
 * The decisions of this process, counted until they are written. A count is written with its whole value and an id of its own, so
 * it may be written repeatedly. A count is removed when it has been written and its time window is over. When it has to be
 * removed earlier, to free memory, later decisions of its kind get a new count, and readers add the counts up.
 *
 * There are at most `most` kinds at a time. Further decisions are dropped and counted in `lost`: no call waits or fails because
 * of its audit.
 */
export class AuditCounts {
  private readonly counts = new Map<string, Count>()
  private readonly max: number
  lost = 0

  constructor(max: number) {
    this.max = max
  }

  get size(): number {
    return this.counts.size
  }

  note({ decision, isUse, key, permission, reason, route }: Decision, nowMs: number): void {
    const beganAt = nowMs - (nowMs % windowMs)
    const kind = `${key.id} ${beganAt} ${decision} ${reason} ${permission} ${route}`
    const known = this.counts.get(kind)
    if (known !== undefined) {
      known.count++
      known.lastAt = Math.max(known.lastAt, nowMs)
    } else if (this.counts.size >= this.max) {
      this.lost++
    } else {
      this.counts.set(kind, {
        entry: randomUUID(),
        team_id: key.team,
        key_id: key.id,
        route_key: route,
        permission,
        decision,
        reason,
        isUse,
        beganAt,
        firstAt: nowMs,
        lastAt: nowMs,
        count: 1,
        written: 0
      })
    }
  }

  /** The counts that have changed since they were written last. */
  due(): ReadonlyArray<CountedDecisions> {
    const due: Array<CountedDecisions> = []
    for (const { written, ...counted } of this.counts.values()) {
      if (counted.count !== written) due.push(counted)
    }
    return due
  }

  /** Marks counts as written. */
  written(counted: ReadonlyArray<CountedDecisions>, nowMs: number): void {
    const counts = new Map(counted.map(({ count, entry }) => [entry, count]))
    for (const [kind, count] of this.counts) {
      count.written = counts.get(count.entry) ?? count.written
      const isOver = count.beganAt + windowMs <= nowMs || this.counts.size > this.max / 2
      if (isOver && count.written === count.count) this.counts.delete(kind)
    }
  }
}
