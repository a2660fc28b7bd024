import { Schema } from "effect"
import type { Message } from "@tidegate/model/Message"
import { form } from "./Api.ts"
import { judgeAws } from "./AwsAnswers.ts"
import { awsLeadsTo, awsSender, largest, largestBatch } from "./AwsApi.ts"
import {
  attributeType,
  bodyTemplate,
  contentOf,
  contentSettings,
  faultsOfFifo,
  fifoIds,
  fifoSettings
} from "./AwsMessage.ts"
import { awsOrigin } from "@tidegate/outbound-auth/AwsPlace"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { endpointOf } from "./Origin.ts"
import { type Answer, type AttemptFacts, type BatchPart, connector, payloadPerStep } from "./Connector.ts"
import { shortened } from "./Cutting.ts"
import { type DeliveryTemplate, type Fill, template, TemplateText } from "./Rendering.ts"
import { concurrency, needed, pacing, setting, text } from "./Settings.ts"

const arn = /^arn:aws[\w-]{0,20}:sns:([a-z\d][a-z\d-]{0,62}):\d{12}:[\w-]{1,256}(?:\.fifo)?$/

const TopicArn = text
  .check(
    Schema.isPattern(arn, {
      message: "must be the ARN of a topic, like arn:aws:sns:eu-central-1:123456789012:orders"
    })
  )
  .annotate({ examples: ["arn:aws:sns:eu-central-1:123456789012:orders"] })

const isFifo = (topicArn: string): boolean => topicArn.endsWith(".fifo")

/** Subjects have fewer than 100 characters. */
const longestSubject = 99

/** A subject on one line; empty: there is none. */
const subjectOf = (fill: Fill, subject: DeliveryTemplate): string =>
  shortened(
    fill(subject)
      .toWellFormed()
      .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
      .trim(),
    longestSubject
  )

/** The members of attributes in a form. */
const attributeFields = (attributes: Readonly<Record<string, string>>): ReadonlyArray<readonly [string, string]> =>
  Object.entries(attributes).flatMap(([name, value], i) => {
    const entry = `MessageAttributes.entry.${i + 1}`
    return [
      [`${entry}.Name`, name],
      [`${entry}.Value.DataType`, attributeType],
      [`${entry}.Value.StringValue`, value]
    ] as const
  })

/** Bytes of an answer to several messages that are searched: each result has a few hundred. */
const searched = 65_536

/** The text of a result's members. They contain no entities and no elements. */
const members = {
  Id: /<Id>(\d{1,2})<\/Id>/,
  MessageId: /<MessageId>([\w-]{1,128})<\/MessageId>/,
  Code: /<Code>([\w.-]{1,128})<\/Code>/
}

/** The results in an answer to several messages, one for each, in any order. */
const resultsIn = ({ body }: Answer): ReadonlyArray<Readonly<Record<string, string>>> =>
  body
    .toString("latin1", 0, searched)
    .split("</member>", largestBatch.sns.maxCount)
    .map((text) => {
      const result = text.slice(text.lastIndexOf("<member>") + 1)
      return Object.fromEntries(
        Object.entries(members).flatMap(([name, pattern]) => {
          const found = pattern.exec(result)?.[1]
          return found === undefined ? [] : [[name, found]]
        })
      )
    })

/** Publishes messages to a topic of Amazon SNS. */
export const awsSns = connector({
  type: "AWS_SNS",
  name: "Amazon SNS",
  description: "Publishes a message to a topic of Amazon SNS.",
  settings: {
    topic_arn: needed(TopicArn, "the ARN of the topic"),
    endpoint: endpointOf("Where the service is; null: Amazon's of the topic's region"),
    subject: setting(
      TemplateText(1_024).annotate({ description: "The subject of e-mails to subscribers; cut to 99 characters" }),
      null
    ),
    ...contentSettings("as attributes of the message"),
    ...fifoSettings,
    ...batching,
    ...pacing,
    ...concurrency
  },
  check: ({ topic_arn, ...settings }) => [
    ...faultsOfFifo(isFifo(topic_arn), settings),
    ...faultsOfBatches(settings, largestBatch.sns)
  ],
  auths: ["AWS_ACCESS_KEY"],
  leadsTo: ({ endpoint }) => awsLeadsTo(endpoint),
  credentials: "mask",
  perStep: { ...payloadPerStep("The message, where there is no body_template"), address: ["endpoint"] },
  example: {
    name: "orders-topic",
    type: "AWS_SNS",
    config: {
      topic_arn: "arn:aws:sns:eu-central-1:123456789012:orders",
      subject: "Order {{payload.id}}",
      auth_type: "AWS_ACCESS_KEY",
      auth: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
    }
  },
  open: ({ body_template, endpoint, include_metadata, subject, topic_arn, ...settings }, auth) => {
    const body = bodyTemplate(body_template)
    const ids = fifoIds(isFifo(topic_arn), settings)
    const title = subject === null ? null : template(subject)
    const region = arn.exec(topic_arn)![1]!
    /** The members of a message, as pairs of a form. */
    const entryOf = (fill: Fill, facts: AttemptFacts, message: Message): BatchPart => {
      const { attributes, bytes, text } = contentOf(fill, message, facts, body, include_metadata, largest.sns)
      const line = title === null ? "" : subjectOf(fill, title)
      const fields = [
        ["Message", text],
        ...(line === "" ? [] : [["Subject", line] as const]),
        ...Object.entries(ids(fill, facts)),
        ...attributeFields(attributes)
      ] as const
      // Takes a quarter of the time of URLSearchParams.
      return { text: fields.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&"), bytes }
    }
    const call = (action: string, pairs: ReadonlyArray<string>) => ({
      headers: [],
      contentType: form,
      body: [`Action=${action}`, "Version=2010-03-31", `TopicArn=${encodeURIComponent(topic_arn)}`, ...pairs].join("&")
    })
    const sender = awsSender(
      { auth, service: "sns", region, url: `${endpoint ?? awsOrigin("sns", region)}/` },
      (...event) => call("Publish", [entryOf(...event).text]),
      judgeAws(({ body }) => /<MessageId>[\w-]+<\/MessageId>/.test(body.toString("latin1", 0, 4_096))),
      {
        limits: batchLimits(settings, largestBatch.sns),
        part: entryOf,
        call: (parts) =>
          call(
            "PublishBatch",
            parts.flatMap(({ text }, place) =>
              [`Id=${place}`, ...text.split("&")].map(
                (pair) => `PublishBatchRequestEntries.member.${place + 1}.${pair}`
              )
            )
          ),
        resultsOf: (answer) => {
          const results = resultsIn(answer)
          return (place) => results.find(({ Id }) => Id === String(place))
        },
        proof: "MessageId",
        error: "Code"
      }
    )
    // A topic with raw message delivery passes attributes on to a queue, from which a source may read them.
    return { ...sender, marksMessages: true }
  }
})
