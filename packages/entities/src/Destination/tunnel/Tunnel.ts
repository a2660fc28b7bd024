import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import type { TargetAvailability } from "../queue/QueueHost.ts"
import type { Heard, Listening, SessionEnd, TunnelJob, TunnelResult } from "./TunnelProtocol.ts"

/** Deliveries of one tunnel that are under way at the most. */
export const maxThroughTunnel = 50
/** How long an event waits for a client before its attempt fails (ms). */
const patienceMs = 120_000
/** How long a question is left open (ms), and how long after its answer the next one may be on its way. */
const listenMs = 5_000
const silentMs = 8_000
/** Bytes of bodies in one answer, or one body. */
const maxAtOnce = 8 * 1024 * 1024

/** How an attempt through a tunnel has ended. `late`: nothing was answered in time. `away`: there was nobody to send it to. */
export type TunnelEnding =
  | { readonly kind: "answered"; readonly result: TunnelResult; readonly handedAt: number }
  | { readonly kind: "late" }
  | { readonly kind: "away" }

/** Whoever had it has gone: it is to be sent again, and nothing is known of what became of it there. */
export interface Returned {
  readonly kind: "returned"
}

/** The world of a tunnel. */
interface TunnelHost {
  readonly now: () => number
  /** Calls back after so long (ms), unless it is told not to. */
  readonly after: (ms: number, then: () => void) => () => void
  /** Somebody has come, or has gone. */
  readonly changed: () => void
  /** Whether the shard is ours still. Else nothing is handed out: its new owner does. */
  readonly mayDeliver: () => boolean
}

interface Session {
  readonly id: string
  readonly localUrl: string | null
  /** Whether it came to this owner: it is newer than whatever only asks here. */
  readonly hasCome: boolean
  /** What its process held when it asked last. */
  holding: Set<string>
  room: number
  /** Answers the question that is open. */
  answer: ((heard: Heard) => void) | null
  /** Ends the wait for its next question, or for something to answer this one with. */
  stopWaiting: () => void
}

interface Pending {
  readonly job: TunnelJob
  readonly done: (ending: TunnelEnding | Returned) => void
  /** Ends the time that its client has, which is from when its process has it. */
  stopTimer: () => void
  /** Whether the session's process has it. */
  isHanded: boolean
  handedAt: number
}

const nothing: Heard = { jobs: [], ended: null }

/**
 * The actor's end of a tunnel: who holds it open, and what is under way through it. One session at a time: the newest. It is the one that
 * has come here last, whatever the clocks say of those that came to an owner before; among those, which only ask here, the one with the
 * greatest id. Nothing in it has to be kept: what is under way is in SQL, and
 * whoever holds the tunnel open asks again.
 */
export class Tunnel implements TargetAvailability {
  readonly patience = patienceMs
  readonly #host: TunnelHost
  readonly #jobs = new Map<string, Pending>()
  #session: Session | null = null
  #awaySince: number
  #isGone = false
  #isFlushing = false

  constructor(host: TunnelHost) {
    this.#host = host
    this.#awaySince = host.now()
  }

  /** Since when nobody holds it open (Unix ms); null: somebody does. */
  get awaySince(): number | null {
    return this.#session === null ? this.#awaySince : null
  }

  get session(): Pick<Session, "id" | "localUrl"> | null {
    return this.#session
  }

  /** Whether its destination is there, and is one that a tunnel leads to. */
  configure(isThere: boolean): void {
    if (this.#isGone === !isThere) return
    this.#isGone = !isThere
    if (this.#isGone) this.#end("gone")
  }

  /** Somebody comes, and whoever was there goes. Null: nobody may. */
  attach(localUrl: string | null): string | null {
    if (this.#isGone) return null
    const last = this.#session === null ? 0 : (idTime(this.#session.id) ?? 0) + 1
    const id = newId(prefixes.tunnelSession, Math.max(this.#host.now(), last))
    this.#begin(id, localUrl, true)
    return id
  }

  /** A session asks for what there is to deliver. Answered once; what is returned withdraws the question. */
  listen({ cli_id, holding, local_url, room }: Listening, answer: (heard: Heard) => void): () => void {
    const none = (): void => {}
    const ended = this.#isGone ? "gone" : this.#isReplaced(cli_id) ? "replaced" : null
    if (ended !== null) {
      answer({ jobs: [], ended })
      return none
    }
    // Known to the last owner of the shard.
    if (this.#session?.id !== cli_id) this.#begin(cli_id, local_url, false)
    const session = this.#session!
    this.#reply(session, nothing)
    session.holding = new Set(holding)
    session.room = room
    session.answer = answer
    session.stopWaiting()
    session.stopWaiting = this.#host.after(listenMs, () => this.#reply(session, nothing))
    for (const pending of this.#jobs.values()) {
      if (!session.holding.has(pending.job.job_id)) this.#take(pending)
      else if (!pending.isHanded) this.#hand(pending, this.#host.now())
    }
    this.#flush()
    return () => {
      if (session.answer === answer) this.#reply(session, nothing)
    }
  }

  /** What clients have answered; says how much of it nobody waits for. */
  answered(sessionId: string, results: ReadonlyArray<TunnelResult>): number {
    let ignored = 0
    for (const result of results) {
      const isOurs = sessionId === this.#session?.id
      const pending = isOurs ? this.#jobs.get(result.job_id) : undefined
      // Sent by the last owner of the shard, and not begun here yet: its process forgets it now.
      if (isOurs) this.#session!.holding.delete(result.job_id)
      if (pending === undefined) ignored++
      else this.#over(pending, { kind: "answered", result, handedAt: pending.handedAt })
    }
    return ignored
  }

  /** A session's client has gone. */
  leave(sessionId: string): void {
    if (this.#session?.id === sessionId) this.#end(null)
  }

  /** Hands a job to whoever holds the tunnel open. `done` may be called before this returns. */
  send(job: TunnelJob, done: (ending: TunnelEnding | Returned) => void): void {
    const session = this.#session
    if (session === null) return done({ kind: "away" })
    const now = this.#host.now()
    const pending: Pending = {
      job,
      done,
      stopTimer: () => {},
      isHanded: false,
      handedAt: now
    }
    this.#jobs.set(job.job_id, pending)
    // Sent by the last owner of the shard, and not answered yet.
    if (session.holding.has(job.job_id)) this.#hand(pending, now)
    if (this.#isFlushing) return
    this.#isFlushing = true
    // What is started in one go goes out in one go.
    queueMicrotask(() => {
      this.#isFlushing = false
      this.#flush()
    })
  }

  /** The actor ends; its sessions ask the next one. */
  stop(): void {
    this.#end(null)
  }

  #isReplaced(id: string): boolean {
    const session = this.#session
    return session !== null && id !== session.id && (session.hasCome || id < session.id)
  }

  #begin(id: string, localUrl: string | null, hasCome: boolean): void {
    this.#end("replaced")
    const session: Session = {
      id,
      localUrl,
      hasCome,
      holding: new Set(),
      room: 0,
      answer: null,
      stopWaiting: this.#host.after(silentMs, () => this.leave(id))
    }
    this.#session = session
    this.#host.changed()
  }

  #end(why: SessionEnd | null): void {
    const session = this.#session
    if (session === null) return
    session.answer?.({ jobs: [], ended: why })
    session.answer = null
    session.stopWaiting()
    this.#session = null
    this.#awaySince = this.#host.now()
    const returned = [...this.#jobs.values()].toReversed()
    // The first that was sent is put back last, and so is the first again.
    for (const pending of returned) this.#over(pending, { kind: "returned" })
    this.#host.changed()
  }

  #over(pending: Pending, ending: TunnelEnding | Returned): void {
    this.#jobs.delete(pending.job.job_id)
    pending.stopTimer()
    pending.done(ending)
  }

  #hand(pending: Pending, now: number): void {
    pending.isHanded = true
    pending.handedAt = now
    pending.stopTimer = this.#host.after(pending.job.timeout_ms, () => this.#over(pending, { kind: "late" }))
  }

  /** Its process has it no more, or never had it. */
  #take(pending: Pending): void {
    pending.isHanded = false
    pending.stopTimer()
  }

  #flush(): void {
    const session = this.#session
    if (session === null || session.answer === null || session.room <= 0 || !this.#host.mayDeliver()) return
    const jobs: Array<TunnelJob> = []
    const now = this.#host.now()
    const most = Math.min(session.room, maxAtOnce)
    let bytes = 0
    for (const pending of this.#jobs.values()) {
      if (pending.isHanded) continue
      bytes += pending.job.body.length
      if (jobs.length > 0 && bytes > most) break
      this.#hand(pending, now)
      jobs.push(pending.job)
    }
    if (jobs.length > 0) this.#reply(session, { jobs, ended: null })
  }

  #reply(session: Session, heard: Heard): void {
    if (session.answer === null) return
    const { answer } = session
    session.answer = null
    session.stopWaiting()
    session.stopWaiting = this.#host.after(silentMs, () => this.leave(session.id))
    answer(heard)
  }
}
