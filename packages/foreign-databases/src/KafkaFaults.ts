import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { SessionFailure } from "@tidegate/connectors/Failure"
import { isRetriable } from "@tidegate/connectors/KafkaErrors"
import { failureOf } from "./BrokerLine.ts"
import { ServerFault } from "./ServerFrames.ts"

/** What a failure of a call means for the calls after it. */

export type Fault = BrokerRefusal | SessionFailure

/** Failures of a connection that another attempt may not have. Others are reported at once: refused addresses, certificates, breaches. */
const passingCodes: ReadonlySet<SessionFailure["code"]> = new Set([
  "CONNECTION_REFUSED",
  "CONNECTION_RESET",
  "SOCKET_CLOSED",
  "TIMEOUT",
  "DNS_LOOKUP_FAILED",
  "HOST_UNREACHABLE",
  "NETWORK_UNREACHABLE",
  "NETWORK_ERROR"
])

export const mayPass = (fault: Fault): boolean =>
  fault instanceof BrokerRefusal ? isRetriable(fault.code) : passingCodes.has(fault.code)

/** A client of a cluster connects again by itself, so a connection that ends does not end the session. */
export const faultOf = (thrown: unknown): Fault => {
  if (thrown instanceof BrokerRefusal) return thrown
  if (thrown instanceof ServerFault || thrown instanceof RangeError) return faultOf(failureOf(thrown))
  const { code, message } =
    thrown instanceof SessionFailure ? thrown : ({ code: "UNKNOWN", message: "the gateway has failed" } as const)
  return new SessionFailure({ code, message, final: false, broken: false })
}

/** How long (ms) a call is repeated whose failure may pass: less than a send may take, so that the attempt says what was wrong. */
export const lifetime = 20_000

/** Pauses (ms) before a call is repeated: the first, and the longest. */
const shortestPause = 50
const longestPause = 1_000

export const pauseAfter = (pause: number): number => Math.min(Math.max(pause * 2, shortestPause), longestPause)

export const paused = (ms: number): Promise<void> => new Promise((go) => setTimeout(go, ms).unref())

/** Repeats a call whose failure may pass, for `lifetime`. `between`: what is done before it is repeated; it may fail for good. */
export const repeated = async <A>(call: () => Promise<A>, between: () => Promise<unknown>): Promise<A> => {
  const until = performance.now() + lifetime
  for (let pause = 0; ; pause = pauseAfter(pause)) {
    try {
      return await call()
    } catch (thrown) {
      const fault = faultOf(thrown)
      if (!mayPass(fault) || performance.now() + pause > until) throw fault
      await paused(pause)
      await between()
    }
  }
}
