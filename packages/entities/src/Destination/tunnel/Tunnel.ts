import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import type { TargetAvailability } from "../queue/QueueHost.ts"
import type { Heard, Listening, SessionEnd, TunnelJob, TunnelResult } from "./TunnelProtocol.ts"

/** The largest number of deliveries of one tunnel that are under way. */
export const maxThroughTunnel = 50
/** How long an event waits for a client before its attempt fails (ms). */
const patienceMs = 120_000
/** How long a poll stays open (ms), and how long after its answer the next one may take to arrive. */
const listenMs = 5_000
const silentMs = 8_000
/** Bytes of bodies in one answer, or one larger body. */
const maxAtOnce = 8 * 1024 * 1024

/** How an attempt through a tunnel has ended. `late`: no answer in time. `away`: there was no client. */
export type TunnelEnding =
  | { readonly kind: "answered"; readonly result: TunnelResult; readonly handedAt: number }
  | { readonly kind: "late" }
  | { readonly kind: "away" }

/** The client that had the job is gone: it is sent again, and it is not known what happened to it there. */
export interface Returned {
  readonly kind: "returned"
}

/** The environment of a tunnel. */
export interface TunnelHost {
  readonly now: () => number
  /** Calls back after so long (ms), unless cancelled. */
  readonly after: (ms: number, then: () => void) => () => void
  /** A client has connected or is gone. */
  readonly changed: () => void
  /** Whether this process still owns the shard. If not, no job is handed out: the new owner does that. */
  readonly mayDeliver: () => boolean
}

interface Session {
  readonly id: string
  readonly localUrl: string | null
  /** Whether the session attached at this owner: then it is newer than any session that only polls here. */
  readonly hasCome: boolean
  /** The jobs that its process held at its last poll. */
  holding: Set<string>
  room: number
  /** Answers the open poll. */
  answer: ((heard: Heard) => void) | null
  /** Ends the wait for its next poll, or for a job to answer the open one with. */
  stopWaiting: () => void
}

interface Pending {
  readonly job: TunnelJob
  readonly done: (ending: TunnelEnding | Returned) => void
  /** Ends the client's time, which starts when its process has the job. */
  stopTimer: () => void
  /** Whether the session's process has it. */
  isHanded: boolean
  handedAt: number
}

const nothing: Heard = { jobs: [], ended: null }

/**
 * The actor's end of a tunnel: the session that holds it open, and the deliveries under way through it. There is one session at a
 * time, the newest. The newest is the one that attached here last, whatever the clocks say about sessions that attached at an
 * earlier owner. Among those, which only poll here, it is the one with the greatest id. Nothing here has to be stored: deliveries
 * under way are in SQL, and the session's process polls again.
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

  /** Since when no client holds it open (Unix ms); null: one does. */
  get awaySince(): number | null {
    return this.#session === null ? this.#awaySince : null
  }

  get session(): Pick<Session, "id" | "localUrl"> | null {
    return this.#session
  }

  /** Sets whether its destination exists and is of a type that uses a tunnel. */
  configure(isThere: boolean): void {
    if (this.#isGone === !isThere) return
    this.#isGone = !isThere
    if (this.#isGone) this.#end("gone")
  }

  /** A new client attaches and replaces the previous one. Null: not allowed. */
  attach(localUrl: string | null): string | null {
    if (this.#isGone) return null
    const last = this.#session === null ? 0 : (idTime(this.#session.id) ?? 0) + 1
    const id = newId(prefixes.tunnelSession, Math.max(this.#host.now(), last))
    this.#begin(id, localUrl, true)
    return id
  }

  /** A session polls for jobs. `answer` is called once; the returned function withdraws the poll. */
  listen({ cli_id, holding, local_url, room }: Listening, answer: (heard: Heard) => void): () => void {
    const none = (): void => {}
    const ended = this.#isGone ? "gone" : this.#isReplaced(cli_id) ? "replaced" : null
    if (ended !== null) {
      answer({ jobs: [], ended })
      return none
    }
    // The session attached at the last owner of the shard.
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

  /** Takes the results of a client; returns how many of them belong to nothing that is under way. */
  answered(sessionId: string, results: ReadonlyArray<TunnelResult>): number {
    let ignored = 0
    for (const result of results) {
      const isOurs = sessionId === this.#session?.id
      const pending = isOurs ? this.#jobs.get(result.job_id) : undefined
      // The job was sent by the last owner of the shard and has not started here yet: its process forgets it now.
      if (isOurs) this.#session!.holding.delete(result.job_id)
      if (pending === undefined) ignored++
      else this.#over(pending, { kind: "answered", result, handedAt: pending.handedAt })
    }
    return ignored
  }

  /** A session's client is gone. */
  leave(sessionId: string): void {
    if (this.#session?.id === sessionId) this.#end(null)
  }

  /** Hands a job to the session. `done` may be called before this returns. */
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
    // The job was sent by the last owner of the shard and is not answered yet.
    if (session.holding.has(job.job_id)) this.#hand(pending, now)
    if (this.#isFlushing) return
    this.#isFlushing = true
    // Jobs that are started in one go are sent in one answer.
    queueMicrotask(() => {
      this.#isFlushing = false
      this.#flush()
    })
  }

  /** The actor ends; its sessions poll the next one. */
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
    // Put back in reverse order, so that the job that was sent first is the first again.
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

  /** The session's process no longer has it, or never had it. */
  #take(pending: Pending): void {
    pending.isHanded = false
    pending.stopTimer()
  }

  #flush(): void {
    const session = this.#session
    if (session === null || session.answer === null || session.room <= 0 || !this.#host.mayDeliver()) return
    const jobs: Array<TunnelJob> = []
    const now = this.#host.now()
    const max = Math.min(session.room, maxAtOnce)
    let bytes = 0
    for (const pending of this.#jobs.values()) {
      if (pending.isHanded) continue
      bytes += pending.job.body.length
      if (jobs.length > 0 && bytes > max) break
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
