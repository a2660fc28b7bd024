import { randomUUID } from "node:crypto"
import type { KeyDecision, KeyPermission, KeyReason } from "@tidegate/model/ProjectKey"
import type { CountedDecisions } from "@tidegate/storage/teams/KeyAudit"

/** Decisions of one kind within so long (ms), by the clock of UTC, are one. */
const windowMs = 300_000

/** One decision about a key. */
export interface Decision {
  readonly key: { readonly id: string; readonly team: string }
  readonly route: string
  readonly permission: KeyPermission
  readonly decision: KeyDecision
  readonly reason: KeyReason | null
  /** Whether the key was let in: not where something was done about it. */
  readonly isUse: boolean
}

type Count = { -readonly [Name in keyof CountedDecisions]: CountedDecisions[Name] } & { written: number }

/**
 * The decisions of this process, counted until they are written. A count is written whole, under an id of its own: it may be written as often as
 * it takes. One that has been written and whose window is over is forgotten; one that is forgotten sooner, to make room, is
 * followed by another one of the same kind, and readers add them up.
 *
 * At most `most` kinds at a time. Beyond that decisions are let go and counted in `lost`: no call waits, and none fails, for its audit.
 */
export class AuditCounts {
  private readonly counts = new Map<string, Count>()
  private readonly most: number
  lost = 0

  constructor(most: number) {
    this.most = most
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
    } else if (this.counts.size >= this.most) {
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

  /** What has been counted and not been written yet, as it is now. */
  due(): ReadonlyArray<CountedDecisions> {
    const due: Array<CountedDecisions> = []
    for (const { written, ...counted } of this.counts.values()) {
      if (counted.count !== written) due.push(counted)
    }
    return due
  }

  /** That has been written. */
  written(counted: ReadonlyArray<CountedDecisions>, nowMs: number): void {
    const counts = new Map(counted.map(({ count, entry }) => [entry, count]))
    for (const [kind, count] of this.counts) {
      count.written = counts.get(count.entry) ?? count.written
      const isOver = count.beganAt + windowMs <= nowMs || this.counts.size > this.most / 2
      if (isOver && count.written === count.count) this.counts.delete(kind)
    }
  }
}
