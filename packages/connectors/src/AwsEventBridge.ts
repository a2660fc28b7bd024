import { Schema } from "effect"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import type { Message } from "@tidegate/model/Message"
import { judgeAws, judgeRefusedPart } from "./AwsAnswers.ts"
import { withinLimit } from "./Api.ts"
import { endpointOf } from "./Origin.ts"
import { awsLeadsTo, awsSender, jsonCall, largest, largestBatch, listed } from "./AwsApi.ts"
import { bodyTemplate, contentSettings, documentOf } from "./AwsMessage.ts"
import { awsOrigin } from "@tidegate/outbound-auth/AwsPlace"
import { AwsRegion } from "./AwsPlace.ts"
import { batching, batchLimits, faultsOfBatches } from "./Batches.ts"
import { type Answer, type AttemptFacts, type BatchPart, connector, payloadPerStep, type Verdict } from "./Connector.ts"
import { type DeliveryTemplate, type Fill, filled, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { concurrency, needed, pacing, setting, text } from "./Settings.ts"

const Bus = text
  .check(
    Schema.isPattern(/^(?:arn:aws[\w-]{0,20}:events:[a-z\d-]{1,63}:\d{12}:event-bus\/)?[\w./-]{1,256}$/, {
      message: "must be the name or the ARN of an event bus"
    })
  )
  .annotate({ description: "The name of the event bus, or its ARN if it is another account's" })

/** Characters of the two texts that rules compare. A text that is cut would match no rule, or another one. */
const longestSource = 256
const longestType = 128

const short = (fill: Fill, one: DeliveryTemplate, name: string, longest: number): string => {
  const made = filled(fill, one, name)
  if (made.length > longest) {
    throw new Unrenderable(`config.${name} makes more than ${longest} characters of this event`)
  }
  return made
}

/** The `Detail` of an event, which must be a JSON object. */
const detailOf = (message: Message, facts: AttemptFacts, includeMetadata: boolean): string => {
  withinLimit(message.body.byteLength, largest.events)
  const document = documentOf(message, facts, includeMetadata)
  if (!includeMetadata) {
    const parsed = parseJson(document)
    if (parsed.kind !== "json" || !isJsonObject(parsed.value)) {
      throw new Unrenderable(
        "the payload is no JSON object, and an event must be one: set config.include_metadata or config.body_template"
      )
    }
  }
  return utf8(document)
}

/** The same of a template's text. */
const templatedDetail = (made: string): string => {
  const parsed = parseJson(made)
  if (parsed.kind === "json" && isJsonObject(parsed.value)) return made
  throw new Unrenderable("config.body_template does not make a JSON object of this event")
}

/** The result of the only event of a call. */
const resultIn = (answer: Answer): Readonly<Record<string, unknown>> => listed(answer, "Entries")[0] ?? {}

const judgeCall = judgeAws((answer) => typeof resultIn(answer)["EventId"] === "string")

/** A 200 may hold an event that was refused. */
const judge = (answer: Answer): Verdict => {
  const { ErrorCode } = answer.status === 200 ? resultIn(answer) : {}
  return typeof ErrorCode === "string" ? judgeRefusedPart(answer, ErrorCode) : judgeCall(answer)
}

/** Puts events onto an event bus of Amazon EventBridge. */
export const awsEventBridge = connector({
  type: "AWS_EVENTBRIDGE",
  name: "Amazon EventBridge",
  description: "Puts an event onto an event bus of Amazon EventBridge.",
  settings: {
    region: needed(AwsRegion.annotate({ description: "The region of the event bus" }), "the region of the event bus"),
    endpoint: endpointOf("Where the service is; null: Amazon's of the region"),
    event_bus: setting(Bus, "default"),
    source: needed(
      TemplateText(1_024).annotate({
        description: "The source that rules compare. None begins with aws.",
        examples: ["com.example.shop"]
      }),
      "the source of the events"
    ),
    detail_type: needed(
      TemplateText(1_024).annotate({
        description: "The detail type that rules compare",
        examples: ["order.{{payload.type}}"]
      }),
      "the detail type of the events"
    ),
    ...contentSettings("in a JSON object around the payload"),
    ...batching,
    ...pacing,
    ...concurrency
  },
  check: (settings) => faultsOfBatches(settings, largestBatch.events),
  auths: ["AWS_ACCESS_KEY"],
  leadsTo: ({ endpoint }) => awsLeadsTo(endpoint),
  credentials: "mask",
  perStep: { ...payloadPerStep("The detail, where there is no body_template"), address: ["endpoint"] },
  example: {
    name: "orders-bus",
    type: "AWS_EVENTBRIDGE",
    config: {
      region: "eu-central-1",
      event_bus: "orders",
      source: "com.example.shop",
      detail_type: "Order received",
      auth_type: "AWS_ACCESS_KEY",
      auth: { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }
    }
  },
  open: ({ body_template, detail_type, endpoint, event_bus, include_metadata, region, source, ...batches }, auth) => {
    const body = bodyTemplate(body_template)
    const [from, type] = [template(source), template(detail_type)]
    const entryOf = (fill: Fill, facts: AttemptFacts, message: Message): BatchPart => {
      const Source = short(fill, from, "source", longestSource)
      const DetailType = short(fill, type, "detail_type", longestType)
      const Detail = body === null ? detailOf(message, facts, include_metadata) : templatedDetail(body(fill))
      const timeBytes = 14
      const bytes = timeBytes + Buffer.byteLength(Source + DetailType + Detail)
      withinLimit(bytes, largest.events)
      const Time = facts.createdAt / 1_000
      return { text: JSON.stringify({ EventBusName: event_bus, Source, DetailType, Detail, Time }), bytes }
    }
    const call = (parts: ReadonlyArray<BatchPart>) =>
      jsonCall("1.1", "AWSEvents.PutEvents", `{"Entries":[${parts.map(({ text }) => text).join(",")}]}`)
    return awsSender(
      { auth, service: "events", region, url: `${endpoint ?? awsOrigin("events", region)}/` },
      (...event) => call([entryOf(...event)]),
      judge,
      {
        limits: batchLimits(batches, largestBatch.events),
        part: entryOf,
        call,
        resultsOf: (answer) => {
          const entries = listed(answer, "Entries")
          return (place) => entries[place]
        },
        proof: "EventId",
        error: "ErrorCode"
      }
    )
  }
})
