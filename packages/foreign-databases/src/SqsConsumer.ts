import { type AwsError, awsErrorIn } from "@tidegate/connectors/AwsAnswers"
import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { Received, SqsQueue } from "@tidegate/connectors/Subscriptions"
import type { Answer, Egress } from "@tidegate/egress/Egress"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { maxMessageBody, messageGroupHeader } from "@tidegate/model/BrokerSource"
import { signer } from "@tidegate/outbound-auth/AwsSignature"
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

/** Messages of one call, and messages that are under way at a time: those that wait, and those that are being stored. */
const maxOfCall = 10
const maxUnsettled = 2 * maxOfCall
/** Bytes of an answer. One message fits, whatever JSON makes of its characters. */
const longestAnswer = 3.5 * 1024 * 1024
/** How long (s) a call waits for messages at the service, and how long (ms) it may take in all. */
const longPoll = 20
const patienceMs = 60_000
const longestId = 256
const longestHandle = 8_192

type Members = Readonly<Record<PropertyKey, unknown>>

const notMade = failed("INTERNAL_ERROR", "the call could not be made")

const membersOf = (value: unknown): Members => (isJsonObject(value) ? value : {})

const isText = (value: unknown, longest: number): value is string =>
  typeof value === "string" && value !== "" && value.length <= longest

/** Attributes of a message whose values are texts or numbers. */
const headersIn = (attributes: unknown): Received["headers"] =>
  Object.entries(membersOf(attributes))
    .slice(0, mostHeaders)
    .flatMap(([name, attribute]): Received["headers"] => {
      const { StringValue } = membersOf(attribute)
      return isText(StringValue, longestValue) ? [[name, StringValue]] : []
    })

/** A message, and by what it is deleted; null: it is none. */
const messageIn = (value: unknown): Polled | null => {
  const { Attributes, Body, MessageAttributes, MessageId, ReceiptHandle } = membersOf(value)
  if (!isText(MessageId, longestId) || !isText(ReceiptHandle, longestHandle) || typeof Body !== "string") return null
  const { MessageGroupId } = membersOf(Attributes)
  const body = Buffer.from(Body)
  return {
    handle: ReceiptHandle,
    message: {
      id: MessageId,
      contentType: null,
      contentEncoding: null,
      facts: isText(MessageGroupId, longestValue) ? { [messageGroupHeader]: MessageGroupId } : {},
      headers: headersIn(MessageAttributes),
      body: body.length > maxMessageBody ? null : body,
      size: body.length
    }
  }
}

/** The messages of an answer; null: it is none of SQS. */
const messagesIn = ({ body }: Answer): ReadonlyArray<Polled> | null => {
  const parsed = parseJson(body)
  const { Messages = [] } = parsed.kind === "json" ? membersOf(parsed.value) : { Messages: null }
  if (!Array.isArray(Messages)) return null
  const messages = Messages.map(messageIn)
  return messages.every((one) => one !== null) ? messages : null
}

/** The calls of a queue of SQS. */
const serviceAt = (egress: Egress["Service"], place: SqsQueue): PolledService => {
  const { key, queueUrl, region, visibilityTimeout } = place
  const signed = signer(key, { region, service: "sqs" })

  /** `signal` ends the call. */
  const call = async (action: string, members: Members, signal: AbortSignal): Promise<Answer> => {
    const url = `${new URL(queueUrl).origin}/`
    const request = await signed(
      {
        method: "POST",
        url,
        shownUrl: url,
        headers: ["content-type", "application/x-amz-json-1.0", "x-amz-target", `AmazonSQS.${action}`],
        body: Buffer.from(JSON.stringify({ QueueUrl: queueUrl, ...members }))
      },
      { timestampSeconds: Math.floor(Date.now() / 1_000) }
    )
    let bytes = 0
    return streamed(egress, { ...request, signal, timeoutMs: patienceMs, captureBytes: longestAnswer }, (chunk) => {
      bytes += chunk.length
      return bytes > longestAnswer ? "the answer is too long" : null
    })
  }

  return {
    maxOfCall,
    maxUnsettled,
    poll: async (count, waits, signal): Promise<Poll> => {
      try {
        const members = {
          MaxNumberOfMessages: count,
          WaitTimeSeconds: waits ? longPoll : 0,
          VisibilityTimeout: visibilityTimeout,
          AttributeNames: ["MessageGroupId"],
          MessageAttributeNames: ["All"]
        }
        const answer = await call("ReceiveMessage", members, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]))
        if (answer.bodyTruncated) return { kind: "much" }
        const fault = faultOf(answer)
        if (fault !== null) return { kind: "failed", fault }
        const messages = messagesIn(answer)
        return messages === null
          ? { kind: "failed", fault: failed("PROTOCOL_ERROR", "the service does not answer as SQS does") }
          : { kind: "messages", messages, bytes: answer.body.length }
      } catch {
        return { kind: "failed", fault: notMade }
      }
    },
    settle: async (handles) => {
      const Entries = handles.map((ReceiptHandle, place) => ({ Id: String(place), ReceiptHandle }))
      try {
        return faultOf(await call("DeleteMessageBatch", { Entries }, AbortSignal.timeout(patienceMs)))
      } catch {
        return notMade
      }
    }
  }
}

const faultOf = (answer: Answer): Fault | null => {
  const { bodyTruncated, errorCode, errorMessage, status } = answer
  if (bodyTruncated) return failed("RESPONSE_TOO_LARGE", "the service answers with more than a message has")
  if (errorCode !== null || status === null) return failed(errorCode ?? "SOCKET_CLOSED", errorMessage ?? "no answer")
  if (status >= 200 && status < 300) return null
  const { code, said }: AwsError = awsErrorIn({ ...answer, status })
  return new BrokerRefusal({ code: code ?? `HTTP ${status}`, said, shared: false })
}

/** Receives messages of a queue of SQS by long polls, and deletes those that are settled. */
export const sqsConsumer: Subscribing<"sqs"> = {
  subscribe: (egress, place, events) => new PolledConsumer(serviceAt(egress, place), events)
}
