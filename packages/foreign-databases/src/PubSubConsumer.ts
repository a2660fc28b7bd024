import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { googleErrorIn } from "@tidegate/connectors/Google"
import { SessionFailure } from "@tidegate/connectors/Failure"
import type { PubSubSubscription, Received } from "@tidegate/connectors/Subscriptions"
import type { Answer, Egress } from "@tidegate/egress/Egress"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { maxMessageBody, orderingKeyHeader } from "@tidegate/model/BrokerSource"
import { longestValue, mostHeaders, type Subscribing } from "./Consumer.ts"
import {
  failed,
  type Fault,
  type Poll,
  type Polled,
  PolledConsumer,
  type PolledService,
  streamed
} from "./PolledConsumer.ts"
import { leftOutOf, ShortenedJson } from "./ShortenedJson.ts"

/** Messages of one call. */
const maxOfCall = 100
/** How long (ms) a call for messages may wait, and one that is answered at once may take. The service says only that it ends the first one. */
const longPollMs = 120_000
const patienceMs = 30_000
/** The shortest acknowledgement deadline that a subscription can have (ms), and for how long (s) a message is kept that is under way. */
const shortestDeadlineMs = 10_000
const extendedSeconds = 60
/** Bytes of a text in an answer: the data of the largest message that becomes a request, and what JSON makes of its characters. */
const longestText = 1.5 * 1024 * 1024
/** Bytes that are kept of an answer, and bytes that one may have: the largest message of the service fits. */
const maxKept = 4 * 1024 * 1024
const longestAnswer = 16 * 1024 * 1024
/** Bytes that are kept of an answer to a call that settles. */
const longestReply = 64 * 1024
const longestId = 256
const longestHandle = 8_192

type Members = Readonly<Record<PropertyKey, unknown>>

const notMade = failed("INTERNAL_ERROR", "the call could not be made")
const notPubSub = failed("PROTOCOL_ERROR", "the service does not answer as Pub/Sub does")

const membersOf = (value: unknown): Members => (isJsonObject(value) ? value : {})

const isText = (value: unknown, longest: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= longest

/** The bytes of base64; null: it is none. */
const decoded = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, "base64")
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0
  // The decoder leaves out what is no base64.
  return text.length % 4 === 0 && bytes.length === (text.length / 4) * 3 - padding ? bytes : null
}

/** The data of a message; null: it is no base64. One without data has an empty body. */
const bodyIn = (data: unknown): Pick<Received, "body" | "size"> | null => {
  if (data === undefined) return { body: Buffer.alloc(0), size: 0 }
  if (typeof data !== "string") return null
  const encoded = leftOutOf(data)
  if (encoded !== null) return { body: null, size: Math.floor((encoded * 3) / 4) }
  const body = decoded(data)
  return body && { body: body.length > maxMessageBody ? null : body, size: body.length }
}

/** The names by which destinations of type GCP_PUBSUB say what the data is. */
const ofContent = ["content_type", "content_encoding"] as const

/** A message of this subscription, and by what it is acknowledged; null: it is none. */
const messageIn = (value: unknown, subscription: string): Polled | null => {
  const { ackId, message } = membersOf(value)
  const { attributes, data, messageId, orderingKey } = membersOf(message)
  const content = bodyIn(data)
  if (!isText(ackId, longestHandle) || !isText(messageId, longestId) || content === null) return null
  const named = membersOf(attributes)
  const [contentType, contentEncoding] = ofContent.map((name) =>
    isText(named[name], longestValue) ? named[name] : null
  ) as [string | null, string | null]
  return {
    handle: ackId,
    message: {
      id: `${subscription}/${messageId}`,
      contentType,
      contentEncoding,
      facts: isText(orderingKey, longestValue) ? { [orderingKeyHeader]: orderingKey } : {},
      headers: Object.entries(named)
        .filter((entry): entry is [string, string] => isText(entry[1], longestValue))
        .filter(([name]) => !ofContent.some((one) => one === name))
        .slice(0, mostHeaders),
      ...content
    }
  }
}

/** The messages of an answer; null: it is none of Pub/Sub. */
const messagesIn = (json: Buffer, subscription: string): ReadonlyArray<Polled> | null => {
  const parsed = parseJson(json)
  if (parsed.kind !== "json" || !isJsonObject(parsed.value)) return null
  const { receivedMessages = [] } = membersOf(parsed.value)
  if (!Array.isArray(receivedMessages)) return null
  const messages = receivedMessages.map((one) => messageIn(one, subscription))
  return messages.every((one) => one !== null) ? messages : null
}

/** `token`: with which the call was made. The service may repeat it. */
const faultOf = (answer: Answer, token: string | null): Fault | null => {
  const { errorCode, errorMessage, status } = answer
  if (errorCode !== null || status === null) return failed(errorCode ?? "SOCKET_CLOSED", errorMessage ?? "no answer")
  if (status >= 200 && status < 300) return null
  const { code, said } = googleErrorIn({ ...answer, status })
  const words = token === null ? said : said.replaceAll(token, "****")
  return new BrokerRefusal({ code: code ?? `HTTP ${status}`, said: words, shared: false })
}

/** Whether an answer says which messages of a call could not be settled. The service does so with exactly-once delivery. */
const isOfSome = (answer: Answer): boolean =>
  answer.status === 400 &&
  googleErrorIn({ ...answer, status: answer.status }).details.some(({ metadata }) =>
    Object.values(membersOf(metadata)).some((one) => /^(?:PERMANENT|TRANSIENT)_FAILURE_/.test(String(one)))
  )

/** The calls of a subscription of Pub/Sub. */
const serviceAt = (egress: Egress["Service"], place: PubSubSubscription): PolledService => {
  const { bearer, origin, prefetch, projectId, subscriptionId } = place
  const url = `${origin}/v1/projects/${projectId}/subscriptions/${encodeURIComponent(subscriptionId)}`
  /** The token of the last call. */
  let token: string | null = null

  const call = (
    verb: string,
    members: Members,
    signal: AbortSignal,
    timeoutMs: number,
    take: (chunk: Buffer) => string | null
  ): Promise<Answer> =>
    streamed(
      egress,
      {
        method: "POST",
        url: `${url}:${verb}`,
        headers: [
          "content-type",
          "application/json",
          "user-agent",
          "event-gateway/1",
          ...(token === null ? [] : ["authorization", `Bearer ${token}`])
        ],
        body: JSON.stringify(members),
        signal,
        timeoutMs,
        captureBytes: longestReply
      },
      take
    )

  /** Makes a call with a token, and once more with another one if the service does not take the first. */
  const authorized = async (make: () => Promise<Answer>): Promise<Answer | SessionFailure> => {
    if (bearer === null) return make()
    const first = await bearer(null)
    if (first instanceof SessionFailure) return first
    token = first
    const answer = await make()
    if (answer.status !== 401) return answer
    const other = await bearer(first)
    if (other instanceof SessionFailure) return other
    if (other === null) return answer
    token = other
    return make()
  }

  /** A call about messages, with the token of the last one. */
  const tell = (verb: string, members: Members): Promise<Answer> => {
    let bytes = 0
    return call(verb, members, AbortSignal.timeout(patienceMs), patienceMs, (chunk) => {
      bytes += chunk.length
      return bytes > longestReply ? "the answer is too long" : null
    })
  }
  const told = async (verb: string, members: Members): Promise<Fault | null> => {
    try {
      const answer = await authorized(() => tell(verb, members))
      if (answer instanceof SessionFailure) return answer
      // Those whose time was over come again, and are known then.
      return isOfSome(answer) ? null : faultOf(answer, token)
    } catch {
      return notMade
    }
  }

  return {
    maxOfCall,
    maxUnsettled: prefetch,
    poll: async (count, waits, signal): Promise<Poll> => {
      const timeoutMs = waits ? longPollMs : patienceMs
      const late = AbortSignal.timeout(timeoutMs)
      try {
        let json = new ShortenedJson(longestText, maxKept)
        let bytes = 0
        let isMuch = false
        const members = { maxMessages: count, ...(waits ? {} : { returnImmediately: true }) }
        const answer = await authorized(() => {
          json = new ShortenedJson(longestText, maxKept)
          bytes = 0
          return call("pull", members, AbortSignal.any([signal, late]), timeoutMs, (chunk) => {
            bytes += chunk.length
            isMuch = !json.add(chunk) || bytes > longestAnswer
            return isMuch ? "the answer is too long" : null
          })
        })
        if (answer instanceof SessionFailure) return { kind: "failed", fault: answer }
        if (isMuch) return { kind: "much" }
        // 504: nothing has come for as long as the service waits.
        const isLate = late.aborted || answer.errorCode === "TIMEOUT" || (waits && answer.status === 504)
        if (isLate && !signal.aborted) return { kind: "late" }
        const fault = faultOf(answer, token)
        if (fault !== null) return { kind: "failed", fault }
        const messages = messagesIn(json.text(), subscriptionId)
        return messages === null ? { kind: "failed", fault: notPubSub } : { kind: "messages", messages, bytes }
      } catch {
        return { kind: "failed", fault: notMade }
      }
    },
    settle: (ackIds) => told("acknowledge", { ackIds }),
    extending: {
      firstMs: shortestDeadlineMs,
      extendedMs: extendedSeconds * 1_000,
      extend: (ackIds) => told("modifyAckDeadline", { ackIds, ackDeadlineSeconds: extendedSeconds }),
      // At once, without waiting for a token: the process may be ending, and sends what is under way by then.
      release: (ackIds) => void tell("modifyAckDeadline", { ackIds, ackDeadlineSeconds: 0 }).catch(() => undefined)
    }
  }
}

/** Pulls messages of a subscription of Google Cloud Pub/Sub, and acknowledges those that are settled. */
export const pubSubConsumer: Subscribing<"pubsub"> = {
  subscribe: (egress, place, events) => new PolledConsumer(serviceAt(egress, place), events)
}
