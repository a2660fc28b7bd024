import { Schema } from "effect"
import type { Message } from "@tidegate/model/Message"
import { awsLeadsTo, awsSender, jsonCall, judgeJson, largest, largestBatch, listed } from "./AwsApi.ts"
import {
  attributeType,
  bodyTemplate,
  contentOf,
  contentSettings,
  faultsOfFifo,
  fifoIds,
  fifoSettings
} from "./AwsMessage.ts"
import { AwsRegion } from "./AwsPlace.ts"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { type AttemptFacts, type BatchPart, connector, payloadPerStep } from "./Connector.ts"
import type { Fill } from "./Rendering.ts"
import { concurrency, type FieldErrors, HttpUrl, needed, pacing, setting } from "./Settings.ts"

const queuePath = /^\/(?:[\w-]{1,80}\/){1,3}[\w-]{1,80}(?:\.fifo)?$/

const QueueUrl = HttpUrl(512).check(
  Schema.makeFilter((written: string) => {
    const url = URL.parse(written)
    return (
      (url !== null && queuePath.test(url.pathname) && url.search === "") ||
      "must be the URL of a queue, like https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
    )
  })
)

/** The region in the host of one of Amazon's queues; null: it is another host. */
const regionIn = (queueUrl: string): string | null => {
  const { hostname, protocol } = new URL(queueUrl)
  const [, region = null] =
    /(?:^|\.)sqs(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$/.exec(hostname) ?? []
  return protocol === "https:" ? region : null
}

const isFifo = (queueUrl: string): boolean => queueUrl.endsWith(".fifo")

/** The settings that name a queue. */
export const queueSettings = {
  queue_url: needed(
    QueueUrl.annotate({
      description: "The URL of the queue, also of one that is not Amazon's",
      examples: ["https://sqs.eu-central-1.amazonaws.com/123456789012/orders"]
    }),
    "the URL of the queue"
  ),
  region: setting(AwsRegion.annotate({ description: "The region that signatures name; null: that in queue_url" }), null)
}

interface Queue {
  readonly queue_url: string
  readonly region: string | null
}

export const faultsOfQueue = ({ queue_url, region }: Queue): FieldErrors => {
  const named = regionIn(queue_url)
  if (region === null && named === null) {
    return [{ path: "config.region", message: "is required: config.queue_url does not name the region" }]
  }
  return region !== null && named !== null && region !== named
    ? [{ path: "config.region", message: "must be that in config.queue_url, or null" }]
    : []
}

/** The region that signatures name. */
export const regionOf = ({ queue_url, region }: Queue): string => region ?? regionIn(queue_url) ?? ""

/** Where the credentials go. */
export const leadsToQueue = ({ queue_url }: Pick<Queue, "queue_url">): string =>
  awsLeadsTo(regionIn(queue_url) === null ? queue_url : null)

/** Sends messages to a queue of Amazon SQS. */
export const awsSqs = connector({
  type: "AWS_SQS",
  name: "Amazon SQS",
  description: "Sends a message to a queue of Amazon SQS.",
  settings: {
    ...queueSettings,
    ...contentSettings("as attributes of the message"),
    ...fifoSettings,
    ...batching,
    ...pacing,
    ...concurrency
  },
  check: ({ queue_url, region, ...settings }) => [
    ...faultsOfQueue({ queue_url, region }),
    ...faultsOfFifo(isFifo(queue_url), settings),
    ...faultsOfBatches(settings, largestBatch.sqs)
  ],
  auths: ["AWS_ACCESS_KEY"],
  leadsTo: leadsToQueue,
  credentials: "mask",
  perStep: { ...payloadPerStep("The body of the message, where there is no body_template"), address: ["queue_url"] },
  example: {
    name: "orders-queue",
    type: "AWS_SQS",
    config: {
      queue_url: "https://sqs.eu-central-1.amazonaws.com/123456789012/orders",
      auth_type: "AWS_ACCESS_KEY",
      auth: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
    }
  },
  open: ({ body_template, include_metadata, queue_url, region, ...settings }, auth) => {
    const body = bodyTemplate(body_template)
    const ids = fifoIds(isFifo(queue_url), settings)
    const url = `${new URL(queue_url).origin}/`
    /** The members of a message, as the end of a JSON object. */
    const entryOf = (fill: Fill, facts: AttemptFacts, message: Message): BatchPart => {
      const { attributes, bytes, text } = contentOf(fill, message, facts, body, include_metadata, largest.sqs)
      const named = Object.entries(attributes).map(([name, StringValue]) => [
        name,
        { DataType: attributeType, StringValue }
      ])
      const members = {
        MessageBody: text,
        ...(named.length === 0 ? {} : { MessageAttributes: Object.fromEntries(named) }),
        ...ids(fill, facts)
      }
      return { text: JSON.stringify(members).slice(1), bytes }
    }
    const start = JSON.stringify({ QueueUrl: queue_url }).slice(0, -1)
    const call = (name: string, rest: string) => jsonCall("1.0", `AmazonSQS.${name}`, `${start},${rest}`)
    const sender = awsSender(
      { auth, service: "sqs", region: regionOf({ queue_url, region }), url },
      (...event) => call("SendMessage", entryOf(...event).text),
      judgeJson("MessageId"),
      {
        limits: batchLimits(settings, largestBatch.sqs),
        part: entryOf,
        call: (parts) => {
          const entries = parts.map(({ text }, place) => `{"Id":"${place}",${text}`)
          return call("SendMessageBatch", `"Entries":[${entries.join(",")}]}`)
        },
        resultsOf: (answer) => {
          const results = [...listed(answer, "Successful"), ...listed(answer, "Failed")]
          return (place) => results.find((result) => result?.["Id"] === String(place))
        },
        proof: "MessageId",
        error: "Code"
      }
    )
    return { ...sender, marksMessages: true }
  }
})
