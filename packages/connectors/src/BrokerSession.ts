import { Effect, type Schema } from "effect"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { Message } from "@tidegate/model/Message"
import { type BrokerProtocol, type BrokerProtocols, type BrokerRefusal, Brokers } from "./Brokers.ts"
import type { Answer, AttemptFacts, Session, SessionSender } from "./Connector.ts"
import { SessionFailure } from "./Failure.ts"
import { Unrenderable } from "./Rendering.ts"
import { refusalText } from "./ServerWords.ts"

/** What the types of destinations that publish to a message broker have in common. */

/** Messages under way of a destination: the default and the maximum. */
const usualAtOnce = 50
export const maxAtOnce = 200

export const messagesAtOnce = (max_concurrency: number | null): number =>
  Math.min(max_concurrency ?? usualAtOnce, maxAtOnce)

/** The properties of a message that describe its event. */
export const eventFields = (facts: AttemptFacts): Readonly<Record<string, string>> => ({
  event_id: facts.eventId,
  request_id: facts.requestId,
  source_id: facts.sourceId,
  connection_id: facts.connectionId,
  destination_id: facts.destinationId,
  attempt_number: String(facts.attemptNumber),
  created_at: new Date(facts.createdAt).toISOString()
})

/** What a broker's code means for the attempt. */
export interface Meaning {
  readonly code: AttemptErrorCode
  readonly final: boolean
  readonly what: string
  /** The connection is not used again, because the host name may lead to another server by now. */
  readonly isStale?: true
}

/** Not final, because somebody may repair the broker while retries last. */
export const passing = (what: string, code: AttemptErrorCode = "BAD_RESPONSE"): Meaning => ({
  code,
  final: false,
  what
})

/** This server must not be used any more: another one has taken its place. */
export const stale = (what: string): Meaning => ({ ...passing(what), isStale: true })

/** The broker would refuse the same message again. */
export const lasting = (what: string): Meaning => ({ code: "BAD_RESPONSE", final: true, what })

const unknown = passing("the broker has refused the message")

export interface Refusals {
  /** By the codes of the protocol. */
  readonly meanings: Readonly<Record<string, Meaning>>
  /** The key whose meaning applies if a code has no meaning of its own. */
  readonly classOf?: (code: string) => string
  /** Secrets that the broker may repeat in its messages, and that must be masked. */
  readonly secrets: ReadonlyArray<string>
}

/** What a broker's refusal means for an attempt. `isKnown`: whether its code has a meaning. */
export const refusalsOf =
  ({ classOf = (code) => code, meanings, secrets }: Refusals) =>
  ({ code, said, shared }: BrokerRefusal): { readonly failure: SessionFailure; readonly isKnown: boolean } => {
    const key = [code, classOf(code)].find((one) => Object.hasOwn(meanings, one))
    const meaning = key === undefined ? unknown : meanings[key]!
    const failure = new SessionFailure({
      code: meaning.code,
      message: refusalText(meaning.what, code, said, secrets),
      // The broker ends the connection without saying which message it has refused. The other messages under way were not refused.
      final: meaning.final && !shared,
      broken: meaning.isStale === true
    })
    return { failure, isKnown: key !== undefined }
  }

export interface Publishing<P extends BrokerProtocol> extends Omit<Refusals, "secrets"> {
  readonly protocol: P
  readonly place: BrokerProtocols[P]["place"]
  /** Throws `Unrenderable` if the event makes no message. */
  readonly messageOf: (message: Message, facts: AttemptFacts) => BrokerProtocols[P]["message"]
  /** The password, unless others are named. */
  readonly secrets?: ReadonlyArray<string>
  /** Makes the recorded answer from the broker's id of the message. */
  readonly answer: (said: string) => Schema.JsonObject
}

const unrenderable = ({ code, message }: Unrenderable): SessionFailure =>
  new SessionFailure({ code, message, final: true, broken: false })

const confirmed = (answer: Schema.JsonObject): Answer => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: Buffer.from(JSON.stringify(answer)),
  bodyTruncated: false
})

/** The session of a destination that publishes each message to a broker, and succeeds when the broker has confirmed it. */
export const publishing = <P extends BrokerProtocol>({
  answer,
  messageOf,
  place,
  protocol,
  secrets = [place.password],
  ...refusals
}: Publishing<P>): SessionSender["connect"] => {
  const refusalOf = refusalsOf({ ...refusals, secrets })
  return Effect.gen(function* () {
    const brokers = yield* Brokers
    const publish = yield* brokers.open(protocol, place)
    const send: Session["send"] = (message, facts, mayStart) => {
      let made: BrokerProtocols[P]["message"]
      try {
        made = messageOf(message, facts)
      } catch (fault) {
        if (fault instanceof Unrenderable) return Effect.fail(unrenderable(fault))
        throw fault
      }
      return publish(made, mayStart).pipe(
        Effect.map((said) => confirmed(answer(said))),
        Effect.mapError((failure) => (failure._tag === "BrokerRefusal" ? refusalOf(failure).failure : failure))
      )
    }
    return { send }
  })
}
