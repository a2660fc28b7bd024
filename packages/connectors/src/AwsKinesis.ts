import { Schema } from "effect"
import { withinLimit } from "./Api.ts"
import { endpointOf } from "./Origin.ts"
import type { Message } from "@tidegate/model/Message"
import { awsLeadsTo, awsSender, jsonCall, judgeJson, largest, largestBatch, listed } from "./AwsApi.ts"
import { bodyTemplate, contentSettings, documentOf, hashed } from "./AwsMessage.ts"
import { awsOrigin } from "@tidegate/outbound-auth/AwsPlace"
import { AwsRegion } from "./AwsPlace.ts"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { type AttemptFacts, type BatchPart, connector, payloadPerStep } from "./Connector.ts"
import { type Fill, filled, template, TemplateText } from "./Rendering.ts"
import { concurrency, needed, pacing, setting, text } from "./Settings.ts"

const Stream = text
  .check(
    Schema.isPattern(/^(?:arn:aws[\w-]{0,20}:kinesis:[a-z\d-]{1,63}:\d{12}:stream\/)?[\w.-]{1,128}$/, {
      message: "must be the name or the ARN of a stream"
    })
  )
  .annotate({
    description: "The name of the stream, or its ARN if it is another account's",
    examples: ["orders"]
  })

const longestKey = 256

/** Puts records into a stream of Amazon Kinesis Data Streams. */
export const awsKinesis = connector({
  type: "AWS_KINESIS",
  name: "Amazon Kinesis",
  description: "Puts a record into a stream of Amazon Kinesis.",
  settings: {
    region: needed(AwsRegion.annotate({ description: "The region of the stream" }), "the region of the stream"),
    endpoint: endpointOf("Where the service is; null: Amazon's of the region"),
    stream: needed(Stream, "the name or the ARN of the stream"),
    partition_key: setting(
      TemplateText(1_024).annotate({
        description:
          "Records with the same key are in one shard, in their order. Null: the ordering key of the connection, or the event's id"
      }),
      null
    ),
    ...contentSettings("in a JSON object around the payload"),
    ...batching,
    ...pacing,
    ...concurrency
  },
  check: (settings) => faultsOfBatches(settings, largestBatch.kinesis),
  auths: ["AWS_ACCESS_KEY"],
  leadsTo: ({ endpoint }) => awsLeadsTo(endpoint),
  credentials: "mask",
  perStep: { ...payloadPerStep("The record, where there is no body_template"), address: ["endpoint"] },
  example: {
    name: "orders-stream",
    type: "AWS_KINESIS",
    config: {
      region: "eu-central-1",
      stream: "orders",
      partition_key: "{{payload.id}}",
      auth_type: "AWS_ACCESS_KEY",
      auth: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
    }
  },
  open: ({ body_template, endpoint, include_metadata, partition_key, region, stream, ...batches }, auth) => {
    const body = bodyTemplate(body_template)
    const key = partition_key === null ? null : template(partition_key)
    const start = JSON.stringify(stream.startsWith("arn:") ? { StreamARN: stream } : { StreamName: stream }).slice(
      0,
      -1
    )
    /** The members of a record, as the end of a JSON object. */
    const recordOf = (fill: Fill, facts: AttemptFacts, message: Message): BatchPart => {
      const made = key === null ? (facts.orderingKey ?? facts.eventId) : filled(fill, key, "partition_key")
      const PartitionKey = made.length > longestKey ? hashed(made) : made
      const data = body === null ? documentOf(message, facts, include_metadata) : Buffer.from(body(fill))
      const bytes = data.byteLength + Buffer.byteLength(PartitionKey)
      withinLimit(bytes, largest.kinesis)
      const Data = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64")
      // Base64 has nothing to escape. To search the largest record for it would hold the event loop.
      return { text: `"PartitionKey":${JSON.stringify(PartitionKey)},"Data":"${Data}"}`, bytes }
    }
    const call = (name: string, text: string) => jsonCall("1.1", `Kinesis_20131202.${name}`, `${start},${text}`)
    return awsSender(
      { auth, service: "kinesis", region, url: `${endpoint ?? awsOrigin("kinesis", region)}/` },
      (...event) => call("PutRecord", recordOf(...event).text),
      judgeJson("SequenceNumber"),
      {
        limits: batchLimits(batches, largestBatch.kinesis),
        part: recordOf,
        call: (parts) => call("PutRecords", `"Records":[${parts.map(({ text }) => `{${text}`).join(",")}]}`),
        resultsOf: (answer) => {
          const records = listed(answer, "Records")
          return (place) => records[place]
        },
        proof: "SequenceNumber",
        error: "ErrorCode"
      }
    )
  }
})
