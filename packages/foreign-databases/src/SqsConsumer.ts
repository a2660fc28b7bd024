import { type AwsError, awsErrorIn } from "@tidegate/connectors/AwsAnswers"
import { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import type { Received, Settled, SqsQueue } from "@tidegate/connectors/Subscriptions"
import type { Answer, Egress } from "@tidegate/egress/Egress"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { maxMessageBody, messageGroupHeader } from "@tidegate/model/BrokerSource"
import { signer } from "@tidegate/outbound-auth/AwsSignature"
import { type Consumer, type ConsumerEvents, longestValue, mostHeaders, type Subscribing } from "./Consumer.ts"

/** Messages of one call, and messages that are under way at a time: those that wait, and those that are being stored. */
const mostOfCall = 10
const mostUnsettled = 2 * mostOfCall
/** Bytes of an answer. One message fits, whatever JSON makes of its characters. */
const longestAnswer = 3.5 * 1024 * 1024
/** After an answer of more bytes, the next call asks for one message, and from there on for more. */
const muchOfAnswer = 1024 * 1024
/** How long (s) a call waits for messages at the service, how long (ms) it may take in all, and the least time until another one that got none. */
const longPoll = 20
const patienceMs = 60_000
const againMs = 1_000
const longestId = 256
const longestHandle = 8_192

type Members = Readonly<Record<PropertyKey, unknown>>

const failed = (code: SessionFailure["code"], message: string): SessionFailure =>
  new SessionFailure({ code, message, final: false, broken: true })

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
const messageIn = (value: unknown): { readonly handle: string; readonly message: Omit<Received, "receipt"> } | null => {
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

/** Receives messages of a queue of SQS by long polls, one at a time, and deletes those that are settled. */
class SqsConsumer implements Consumer {
  readonly #egress: Egress["Service"]
  readonly #place: SqsQueue
  readonly #events: ConsumerEvents
  readonly #signed: ReturnType<typeof signer>
  readonly #closing = new AbortController()
  #isSubscribed = false
  #isOver = false
  #isReceiving = false
  /** How many messages the next call asks for. */
  #count = 1
  #receipt = 0
  /** Handles of messages that were delivered and are not deleted. */
  readonly #unsettled = new Map<number, string>()
  #waiting: Array<Received> = []
  #pause: NodeJS.Timeout | undefined

  constructor(egress: Egress["Service"], place: SqsQueue, events: ConsumerEvents) {
    this.#egress = egress
    this.#place = place
    this.#events = events
    this.#signed = signer(place.key, { region: place.region, service: "sqs" })
    this.#receive()
  }

  taken(): ReadonlyArray<Received> {
    const taken = this.#waiting
    this.#waiting = []
    this.#receive()
    return taken
  }

  settle({ rejected, stored }: Settled): void {
    const receipts = [...stored, ...rejected]
    // The service cannot be told that a message is of no use: it gives to the dead-letter queue only what was received too often.
    for (let i = 0; i < receipts.length; i += mostOfCall) void this.#delete(receipts.slice(i, i + mostOfCall))
  }

  close(): void {
    this.#end(cancelled)
  }

  #end(failure: BrokerRefusal | SessionFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#pause)
    this.#closing.abort()
    this.#waiting = []
    this.#events.ended(failure)
  }

  /** A call of the service. `signal` ends it. */
  async #call(action: string, members: Members, signal: AbortSignal): Promise<Answer> {
    const { queueUrl } = this.#place
    const url = `${new URL(queueUrl).origin}/`
    const request = await this.#signed(
      {
        method: "POST",
        url,
        shownUrl: url,
        headers: ["content-type", "application/x-amz-json-1.0", "x-amz-target", `AmazonSQS.${action}`],
        body: Buffer.from(JSON.stringify({ QueueUrl: queueUrl, ...members }))
      },
      { timestampSeconds: Math.floor(Date.now() / 1_000) }
    )
    return new Promise((resolve) => {
      let bytes = 0
      // As a stream: a call that waits must not take a connection from the deliveries to the same service.
      const streaming = this.#egress.stream(
        { ...request, signal, timeoutMs: patienceMs, captureBytes: longestAnswer },
        {
          onHeaders: () => undefined,
          onData: (chunk) => {
            bytes += chunk.length
            if (bytes > longestAnswer) streaming.cancel("the answer is too long")
            return true
          },
          onEnd: resolve
        }
      )
    })
  }

  #receive(): void {
    const isBusy = this.#isReceiving || this.#pause !== undefined || this.#waiting.length > 0
    const count = Math.min(this.#count, mostUnsettled - this.#unsettled.size)
    if (isBusy || count <= 0 || this.#isOver) return
    this.#isReceiving = true
    const since = performance.now()
    const { visibilityTimeout } = this.#place
    const members = {
      MaxNumberOfMessages: count,
      // The first one says at once whether the source is let in.
      WaitTimeSeconds: this.#isSubscribed ? longPoll : 0,
      VisibilityTimeout: visibilityTimeout,
      AttributeNames: ["MessageGroupId"],
      MessageAttributeNames: ["All"]
    }
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(patienceMs)])
    this.#call("ReceiveMessage", members, signal).then(
      (answer) => this.#received(answer, count, since),
      () => this.#end(failed("INTERNAL_ERROR", "the call could not be made"))
    )
  }

  #received(answer: Answer, count: number, since: number): void {
    this.#isReceiving = false
    if (this.#isOver) return
    if (answer.bodyTruncated && count > 1) {
      // What is in it comes again when its time is over.
      this.#count = 1
      return this.#receive()
    }
    const failure = this.#failureOf(answer)
    if (failure !== null) return this.#end(failure)
    const parsed = parseJson(answer.body)
    const { Messages = [] } = parsed.kind === "json" ? membersOf(parsed.value) : { Messages: null }
    const messages = Array.isArray(Messages) && Messages.length <= count ? Messages.map(messageIn) : [null]
    if (messages.includes(null)) {
      return this.#end(failed("PROTOCOL_ERROR", "the service does not answer as SQS does"))
    }
    this.#count = answer.body.length > muchOfAnswer ? 1 : Math.min(2 * this.#count, mostOfCall)
    for (const one of messages) this.#deliver(one!)
    if (!this.#isSubscribed) {
      this.#isSubscribed = true
      this.#events.subscribed()
    } else if (messages.length === 0 && performance.now() - since < againMs) {
      // A service that answers at once that there is nothing is not asked without a pause.
      this.#pause = setTimeout(() => {
        this.#pause = undefined
        this.#receive()
      }, againMs).unref()
    }
    if (messages.length > 0) this.#events.arrived()
    this.#receive()
  }

  #deliver({ handle, message }: NonNullable<ReturnType<typeof messageIn>>): void {
    const receipt = ++this.#receipt
    this.#unsettled.set(receipt, handle)
    this.#waiting.push({ receipt, ...message })
  }

  /** A call that was sent is not ended by the end of the subscription: what it deletes need not be delivered again. */
  async #delete(receipts: ReadonlyArray<number>): Promise<void> {
    const Entries = receipts.flatMap((receipt) => {
      const ReceiptHandle = this.#unsettled.get(receipt)
      return ReceiptHandle === undefined ? [] : [{ Id: String(receipt), ReceiptHandle }]
    })
    try {
      const answer = await this.#call("DeleteMessageBatch", { Entries }, AbortSignal.timeout(patienceMs))
      const failure = this.#failureOf(answer)
      if (failure !== null) return this.#end(failure)
    } catch {
      return this.#end(failed("INTERNAL_ERROR", "the call could not be made"))
    }
    // A message that could not be deleted, because its time is over, comes again, and is known then.
    for (const receipt of receipts) this.#unsettled.delete(receipt)
    this.#receive()
  }

  #failureOf(answer: Answer): BrokerRefusal | SessionFailure | null {
    const { bodyTruncated, errorCode, errorMessage, status } = answer
    if (bodyTruncated) return failed("RESPONSE_TOO_LARGE", "the service answers with more than a message has")
    if (errorCode !== null || status === null) return failed(errorCode ?? "SOCKET_CLOSED", errorMessage ?? "no answer")
    if (status >= 200 && status < 300) return null
    const { code, said }: AwsError = awsErrorIn({ ...answer, status })
    return new BrokerRefusal({ code: code ?? `HTTP ${status}`, said, shared: false })
  }
}

export const sqsConsumer: Subscribing<"sqs"> = {
  subscribe: (egress, place, events) => new SqsConsumer(egress, place, events)
}
