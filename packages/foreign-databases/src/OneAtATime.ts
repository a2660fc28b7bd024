import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { SessionFailure } from "@tidegate/connectors/Failure"
import type { Published } from "./Publisher.ts"

/** Why a connection has ended. */
export type Ended = BrokerRefusal | SessionFailure

interface Job<Message> {
  readonly message: Message
  done: (result: Published) => void
}

interface Host<Message> {
  /** Sends a message. It ends with `finish`, or with the connection. */
  readonly start: (message: Message) => void
  /** Ends the connection: what has begun cannot be taken back while it lasts. */
  readonly interrupt: () => void
  /** What is said of a message whose answer is lost. */
  readonly ambiguous: string
  /** Called once: null when the connection is signed in, or why it never was. */
  readonly signedIn: (failure: Ended | null) => void
}

/** The messages of a connection whose protocol has one at a time: in their order, and each with exactly one result. */
export class OneAtATime<Message> {
  readonly #host: Host<Message>
  /** The message that is under way, and those behind it. */
  readonly #jobs: Array<Job<Message>> = []
  #isSettled = false
  #ended: Ended | null = null
  #isBusy = true
  /** Whether the server has all of the message that is under way. */
  isSent = false

  constructor(host: Host<Message>) {
    this.#host = host
  }

  /** Whether the connection signs in, or a message is under way. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  /** The connection is signed in: messages begin. */
  ready(): void {
    this.#isBusy = false
    this.#settle(null)
    this.#next()
  }

  /** Sends a message after those before it. The returned function withdraws it. */
  publish(message: Message, done: (result: Published) => void): () => void {
    const ended = this.#ended
    if (ended !== null) {
      queueMicrotask(() => done(ended))
      return () => undefined
    }
    const job: Job<Message> = { message, done }
    this.#jobs.push(job)
    queueMicrotask(() => this.#next())
    return () => {
      const at = this.#jobs.indexOf(job)
      if (at === -1) return
      job.done = () => undefined
      if (at === 0 && this.#isBusy) this.#host.interrupt()
      else this.#jobs.splice(at, 1)
    }
  }

  /** The message that is under way has this result, and the next one waits until `free`. */
  answer(result: Published): void {
    this.isSent = false
    this.#jobs.shift()?.done(result)
  }

  /** The next message may begin. */
  free(): void {
    this.#isBusy = false
    this.#next()
  }

  /** The message that is under way has this result, and the next one begins. */
  finish(result: Published): void {
    this.#isBusy = false
    this.answer(result)
    this.#next()
  }

  /** The connection has ended. The first reason counts. */
  end(failure: Ended): void {
    this.#ended ??= failure
    const first = this.isSent && failure instanceof SessionFailure ? this.#doubtful(failure) : failure
    for (const [at, job] of this.#jobs.splice(0).entries()) job.done(at === 0 ? first : failure)
    this.#settle(failure)
  }

  #next(): void {
    const [job] = this.#jobs
    if (job === undefined || this.#isBusy || this.#ended !== null) return
    this.#isBusy = true
    this.#host.start(job.message)
  }

  #doubtful({ broken, code, final, message }: SessionFailure): SessionFailure {
    return new SessionFailure({ code, message: `${message}, ${this.#host.ambiguous}`, final, broken })
  }

  #settle(failure: Ended | null): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#host.signedIn(failure)
  }
}
