import { Result, Schema } from "effect"
import { createHash } from "node:crypto"
import { isUtf8 } from "node:buffer"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { jsonEscape, textEscape } from "@tidegate/interpolation/Escape"
import { compileTemplate, type Template, type TemplateRoots } from "@tidegate/interpolation/Template"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import { maxParsedBytes } from "@tidegate/json/LargeJson"
import { OneOf } from "@tidegate/model/AuthSettings"
import * as Characters from "@tidegate/model/Characters"
import type { Message } from "@tidegate/model/Message"
import { type BatchMost, batchLimits, batchSetting, faultsOfBatches, judgeWhole } from "./Batches.ts"
import { type AttemptFacts, type BatchCalls, type HttpSender, type OutboundRequest, Refusal } from "./Connector.ts"
import { base64Object, codingOf, envelopeOf } from "./Envelope.ts"
import { keyFault, objectUrl } from "./ObjectKey.ts"
import { isOfSize, judgeObjectStore } from "./ObjectStoreAnswers.ts"
import { filledJson, filling, template, Unrenderable } from "./Rendering.ts"
import { type FieldErrors, type SettingsOf, text } from "./Settings.ts"

/** Several events in one object: one line of JSON for each (NDJSON). The key is derived from these events, so no other object has it. */

/** The limits of one object. They bound memory, because the whole object is built before it is sent. */
const most: BatchMost = { maxCount: 500, maxBytes: 10 * 1024 * 1024 }

const longestTemplate = 512

const placeholders = {
  team_id: "none",
  destination_id: "none",
  batch_id: "none",
  year: "none",
  month: "none",
  day: "none",
  hour: "none"
} as const satisfies TemplateRoots<string>

type Placeholder = keyof typeof placeholders
type KeyTemplate = Template<Placeholder>
type KeyValues = Readonly<Record<Placeholder, string>>

const rendered = (key: KeyTemplate, values: KeyValues): string => key.render((name) => values[name], textEscape) ?? ""

/** Example values with the greatest length. Like real values, they consist of letters, digits and underscores. */
const anyValues: KeyValues = {
  team_id: "t".repeat(64),
  destination_id: "d".repeat(64),
  batch_id: "b".repeat(32),
  year: "2026",
  month: "01",
  day: "01",
  hour: "00"
}

const notKey = (written: string): string | null => {
  const compiled = compileTemplate(written, placeholders)
  if (Result.isFailure(compiled)) return `must be a template: ${compiled.failure.message}`
  if (!/\{\{\s*batch_id\s*\}\}/.test(written)) return "must have {{batch_id}}: without it one object replaces another"
  const fault = keyFault(rendered(compiled.success, anyValues))
  return fault === null ? null : `must be a key that can be stored: it ${fault}`
}

/** The setting of stores. */
export const objectBatch = batchSetting({
  key_template: Schema.optionalKey(
    text
      .check(
        Characters.upTo(longestTemplate).abort(),
        Schema.makeFilter((written: string) => notKey(written) ?? true)
      )
      .annotate({
        description:
          "The object's key. Placeholders: {{batch_id}}, which it must have, {{team_id}}, {{destination_id}}, and {{year}}, {{month}}, {{day}}, {{hour}} (UTC) of the oldest event"
      })
  ),
  compression: Schema.optionalKey(
    OneOf(["none", "gzip"]).annotate({ description: "How objects are compressed; default: none" })
  )
})

interface Batched extends SettingsOf<{ readonly batch: typeof objectBatch }> {
  readonly body_template: string | null
  readonly include_metadata: boolean
  readonly max_concurrency: number | null
}

interface OfOneEvent {
  readonly key_template: string
  readonly content_type: string
}

/** Errors of batches, and of settings that have no effect beside them. `usual`: the defaults of those. */
export const faultsOfObjectBatch = (settings: Batched & OfOneEvent, usual: OfOneEvent): FieldErrors =>
  settings.batch === null
    ? []
    : [
        ...faultsOfBatches(settings, most),
        ...(settings.key_template === usual.key_template
          ? []
          : [
              {
                path: "config.key_template",
                message: "has no effect with batch: write config.batch.key_template, and leave it out"
              }
            ]),
        ...(settings.content_type === usual.content_type
          ? []
          : [{ path: "config.content_type", message: `must be ${usual.content_type} with batch: its lines are JSON` }])
      ]

/** The same for the same events in any order: a repeated call writes the same object, and no other call writes this object. */
const batchId = (facts: ReadonlyArray<AttemptFacts>): string => {
  const ids = facts.map(({ eventId }) => eventId).toSorted()
  return createHash("sha256").update(ids.join("\n")).digest("hex").slice(0, 32)
}

const keyValues = (facts: ReadonlyArray<AttemptFacts>): KeyValues => {
  const [{ destinationId, teamId }] = facts as readonly [AttemptFacts, ...ReadonlyArray<AttemptFacts>]
  // The time of the call is not used, because a repeated call would write another object.
  const oldest = new Date(Math.min(...facts.map(({ createdAt }) => createdAt))).toISOString()
  return {
    team_id: teamId,
    destination_id: destinationId,
    batch_id: batchId(facts),
    year: oldest.slice(0, 4),
    month: oldest.slice(5, 7),
    day: oldest.slice(8, 10),
    hour: oldest.slice(11, 13)
  }
}

/** Line breaks of JSON are between its values only: in texts they are escaped. */
const onOneLine = (json: string): string => json.replaceAll(/[\r\n]+/g, " ")

const isJson = (body: Uint8Array): boolean =>
  body.byteLength <= maxParsedBytes && isUtf8(body) && parseJson(body).kind === "json"

/**
 * The line of an event without a template. Every line must be JSON, and no byte may be lost. So a body that is not JSON, or too large to check, is
 * written as base64.
 */
const lineOf = (message: Message, facts: AttemptFacts, hasMetadata: boolean): string => {
  const { body } = message
  const coding = codingOf(message)
  if (hasMetadata && body.byteLength <= maxParsedBytes) return onOneLine(utf8(envelopeOf(body, coding, facts)))
  if (coding === null && isJson(body)) return onOneLine(utf8(body))
  return base64Object(body, coding, hasMetadata ? facts : null)
}

const compressed = promisify(gzip)

const method = "PUT"

/** Puts several events into one object of a bucket. Null: each event has its own object. `sign`: completes the request. */
export const batchOf = (
  { batch, body_template, include_metadata, max_concurrency }: Batched,
  bucket: string,
  sign: HttpSender["complete"]
): BatchCalls | null => {
  const limits = batchLimits({ batch, max_concurrency }, most)
  if (batch === null || limits === null) return null
  const isGzip = batch.compression === "gzip"
  const usual = `batches/{{team_id}}/{{destination_id}}/{{year}}/{{month}}/{{day}}/{{hour}}/{{batch_id}}.ndjson`
  const written = batch.key_template ?? `${usual}${isGzip ? ".gz" : ""}`
  const key = Result.getOrThrow(compileTemplate(written, placeholders))
  const body = body_template === null ? null : template(body_template)

  /** Compresses outside of the event loop, which it would block. */
  const packed = async (request: OutboundRequest): Promise<OutboundRequest> => ({
    ...request,
    headers: [...request.headers, "content-encoding", "gzip"],
    body: await compressed(request.body)
  })

  return {
    method,
    shownUrl: bucket,
    limits,
    judge: judgeWhole(judgeObjectStore, isOfSize),
    part: (message, facts) => {
      try {
        const line =
          body === null
            ? lineOf(message, facts, include_metadata)
            : JSON.stringify(filledJson(filling(message, facts), body, "body_template", jsonEscape))
        return { text: line, bytes: Buffer.byteLength(line) + 1 }
      } catch (cause) {
        if (!(cause instanceof Unrenderable)) throw cause
        return new Refusal({ code: cause.code, message: cause.message, method, shownUrl: bucket })
      }
    },
    call: (parts, facts) => {
      const values = keyValues(facts)
      const url = objectUrl(bucket, rendered(key, values))
      const headers = ["user-agent", "event-gateway/1", "content-type", "application/x-ndjson"]
      if (include_metadata) {
        headers.push("x-amz-meta-team-id", values.team_id, "x-amz-meta-destination-id", values.destination_id)
        headers.push("x-amz-meta-batch-id", values.batch_id, "x-amz-meta-events", String(parts.length))
      }
      const object = Buffer.from(parts.map(({ text }) => `${text}\n`).join(""))
      return { method, url, shownUrl: url, headers, body: object }
    },
    ...(isGzip
      ? {
          complete: async (request, facts) => {
            const ready = await packed(request)
            return sign === undefined ? ready : await sign(ready, facts)
          }
        }
      : {})
  }
}
