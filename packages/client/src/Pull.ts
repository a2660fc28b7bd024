import type { Client } from "./Client.ts"
import { sleep } from "./Retry.ts"
import type { components } from "./schema.ts"
import { waitBefore } from "./Socket.ts"
import { TidegateError } from "./TidegateError.ts"

type Message = components["schemas"]["PulledMessage"]

/** A message of a destination of type PULL, and the ways to settle it. */
export interface PulledMessage extends Readonly<Message> {
  /** The body's bytes, however it was transferred. */
  readonly bytes: () => Uint8Array<ArrayBuffer>
  /** Acknowledges the message. False: its lease had ended, and it may be handed out again. */
  readonly ack: () => Promise<boolean>
  /** Refuses the message: its attempt has failed, and the connection's retry rule applies. False: its lease had ended. */
  readonly nack: (reason?: string) => Promise<boolean>
}

export interface PullOptions {
  /**
   * How many messages one call may fetch: 1 to 100, default 1. All of them are leased from then on, also those that wait for their
   * turn, so their work together has to fit into the lease.
   */
  readonly batch?: number
  /** Ends after this many messages. */
  readonly limit?: number
  /**
   * Ends when there was no message for so long, and fails when the gateway stays unavailable. Without it, the loop waits for messages, and
   * for the gateway, until `signal` ends it.
   */
  readonly waitSeconds?: number
  /** Ends the loop: the message in hand is still settled, and no further one is fetched. */
  readonly signal?: AbortSignal
  /** The gateway cannot be reached, is busy or failed. The call is made again after `retryInMs`. */
  readonly onUnavailable?: (error: unknown, retryInMs: number) => void
  /** The lease of this message ended before it was settled: it may be handed out again. */
  readonly onExpired?: (message: PulledMessage) => void
}

/** The longest time (s) that one call waits. */
const longestCall = 20
/** The pause (ms) after a call without messages: a gateway that is about to stop answers at once. */
const betweenCallsMs = 100
/** How often a call is made when its failure is to be seen, which is after some 6 s. */
const fewTries = 5
/** The longest reason of a refusal (characters). */
const longestReason = 200

type How = "ack" | "nack"

/** Whether the same call may succeed later. A call that never got an answer fails with something else than a `TidegateError`. */
const isUnavailable = (error: unknown): boolean =>
  !(error instanceof TidegateError) || error.status === 429 || error.status >= 500

interface Patience {
  readonly tries: number
  /** Ends the waiting, but no call. */
  readonly until: AbortSignal
  readonly onUnavailable: PullOptions["onUnavailable"]
}

/** Makes a call until it is answered. */
const answered = async <A>(call: () => Promise<A>, { onUnavailable, tries, until }: Patience): Promise<A> => {
  for (let attempt = 0; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (until.aborted || !isUnavailable(error) || attempt + 1 >= tries) throw error
      const retryInMs = waitBefore(attempt)
      onUnavailable?.(error, retryInMs)
      await sleep(retryInMs, until).catch(() => Promise.reject(error))
    }
  }
}

const bytesOf = ({ body, body_base64 }: Message): Uint8Array<ArrayBuffer> =>
  body_base64 === undefined
    ? new TextEncoder().encode(body ?? "")
    : Uint8Array.from(atob(body_base64), (character) => character.charCodeAt(0))

/**
 * Fetches the messages of a destination of type PULL, for `for await`. A message that you have not settled yourself is acknowledged when you
 * ask for the next one. If you leave the loop, by an exception, `return` or `break`, the message in hand and those fetched with it are refused,
 * unless you have settled them: an iterator cannot see why it was left.
 *
 * Messages come at least once: a call whose answer is lost is repeated, and so is its work.
 */
export async function* pullMessages(
  client: Client,
  destinationId: string,
  { batch = 1, limit = Infinity, onExpired, onUnavailable, signal, waitSeconds }: PullOptions = {}
): AsyncGenerator<PulledMessage, void, undefined> {
  const until = signal ?? new AbortController().signal
  const patience = { tries: waitSeconds === undefined ? Infinity : fewTries, until, onUnavailable }
  const path = { id: destinationId }

  const fetched = async (max: number, wait_seconds: number): Promise<ReadonlyArray<Message>> => {
    const options = { params: { path }, body: { max, wait_seconds }, signal: until }
    try {
      const call = () => client.post("/destinations/{id}/messages/pull", options)
      return (await answered(call, patience)).messages
    } catch (error) {
      if (until.aborted) return []
      throw error
    }
  }

  const settle = async (how: How, receipts: ReadonlyArray<string>, reason?: string): Promise<boolean> => {
    const why = reason === undefined ? {} : { reason: Array.from(reason).slice(0, longestReason).join("") }
    const body = { receipts: [...receipts], ...why }
    // The signal does not end the call: the work is done, and only this call says so.
    const call = () => client.post(`/destinations/{id}/messages/${how}`, { params: { path }, body })
    return (await answered(call, patience)).expired.length === 0
  }

  let handedOut = 0
  let waited = 0
  while (!until.aborted && handedOut < limit) {
    const wait = Math.min(longestCall, Math.ceil((waitSeconds ?? Infinity) - waited))
    const messages = await fetched(Math.min(batch, limit - handedOut), wait)
    waited = messages.length > 0 ? 0 : waited + wait
    if (messages.length === 0) {
      if (waitSeconds !== undefined && waited >= waitSeconds) return
      await sleep(betweenCallsMs, until).catch(() => undefined)
    }
    const unsettled = new Set(messages.map(({ receipt }) => receipt))
    try {
      for (const one of messages) {
        if (until.aborted) return
        const settled = async (how: How, reason?: string): Promise<boolean> => {
          unsettled.delete(one.receipt)
          const isInTime = await settle(how, [one.receipt], reason)
          if (!isInTime) onExpired?.(message)
          return isInTime
        }
        const message: PulledMessage = {
          ...one,
          bytes: () => bytesOf(one),
          ack: () => settled("ack"),
          nack: (reason) => settled("nack", reason)
        }
        handedOut++
        yield message
        if (unsettled.has(one.receipt)) await message.ack()
      }
    } finally {
      if (unsettled.size > 0) await settle("nack", [...unsettled], "the consumer has stopped")
    }
  }
}
