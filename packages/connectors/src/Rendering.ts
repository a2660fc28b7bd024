import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { parseJson, utf8 } from "@tidegate/json/JsonText"
import { LargeJson, maxParsedBytes, tooLarge } from "@tidegate/json/LargeJson"
import { type Message, parseQuery, type Values } from "@tidegate/model/Message"
import { type Escape, jsonEscape, textEscape } from "@tidegate/interpolation/Escape"
import { compileTemplate, type Template, type TemplateRoots, valueAt } from "@tidegate/interpolation/Template"
import type { AttemptFacts } from "./Connector.ts"
import { text } from "./Settings.ts"

/** The templates of destinations: messages, rows and objects are filled from the event. */

/** The first word of a placeholder. `payload` is the body: its value if it is JSON, else its text. */
const variables = {
  event_id: "none",
  request_id: "none",
  team_id: "none",
  source_id: "none",
  connection_id: "none",
  destination_id: "none",
  created_at: "none",
  payload: "any",
  headers: "headers",
  query: "any",
  path: "none",
  message: "none",
  media_url: "none",
  braces: "none"
} as const satisfies TemplateRoots<string>

type Variable = keyof typeof variables

/** Fills templates from one message, whose body is parsed at most once. */
export type Fill = (template: DeliveryTemplate, escape?: Escape) => string

export type DeliveryTemplate = Template<Variable>

/** A template that renders exactly this text: `{{braces}}` is the only way to write two braces. */
export const literal = (text: string): string => text.replaceAll("{{", "{{braces}}")

/** Why a text is not a valid template; null if it is. */
export const templateFault = (written: string): string | null => {
  const compiled = compileTemplate(written, variables)
  return Result.isSuccess(compiled) ? null : compiled.failure.message
}

/** A setting that holds a template of at most `longest` characters. */
export const TemplateText = (longest: number) =>
  text
    .check(
      Characters.upTo(longest).abort(),
      Schema.makeFilter((written: string) => {
        const fault = templateFault(written)
        return fault === null || `must be a template: ${fault}`
      })
    )
    .annotate({
      description:
        "Placeholders: {{event_id}}, {{request_id}}, {{team_id}}, {{source_id}}, {{connection_id}}, {{destination_id}}, " +
        "{{created_at}}, {{payload}}, {{payload.a.b}}, {{headers.x}}, {{query.x}}, {{path}}"
    })

/** Compiles a setting that was already validated as a template. */
export const template = (written: string): DeliveryTemplate => Result.getOrThrow(compileTemplate(written, variables))

/** Why an event cannot be sent: its templates make nothing valid. The message contains no data of the event. */
export class Unrenderable {
  readonly message: string
  readonly code: "TEMPLATE_ERROR" | "REQUEST_TOO_LARGE"
  constructor(message: string, code: Unrenderable["code"] = "TEMPLATE_ERROR") {
    this.message = message
    this.code = code
  }
}

/** `payloadOf` a message, computed on first use and only once. */
const lazyPayload = (message: Pick<Message, "body">): (() => unknown) => {
  let parsed: { readonly payload: unknown } | undefined
  return () => (parsed ??= { payload: payloadOf(message) }).payload
}

/**
 * The same, but a body that is too large to parse as a whole is read in parts: only the requested values. Its whole text would exceed the limit
 * of templates.
 */
const lazyParts = (message: Pick<Message, "body">): (() => unknown) => {
  if (message.body.length <= maxParsedBytes) return lazyPayload(message)
  let parts: LargeJson | typeof tooLarge | undefined
  return () => (parts ??= LargeJson.of(message.body) ?? tooLarge)
}

/** Fills templates from this message. Throws `Unrenderable` if a text exceeds the limit of templates. */
export const filling = (message: Message, facts: AttemptFacts): Fill => {
  const payload = lazyParts(message)
  let query: Values | undefined
  const read = (variable: Variable): unknown => {
    switch (variable) {
      case "event_id":
        return facts.eventId
      case "request_id":
        return facts.requestId
      case "team_id":
        return facts.teamId
      case "source_id":
        return facts.sourceId
      case "connection_id":
        return facts.connectionId
      case "destination_id":
        return facts.destinationId
      case "created_at":
        return new Date(facts.createdAt).toISOString()
      case "payload":
        return payload()
      case "headers":
        return message.headers
      case "query":
        return (query ??= parseQuery(message.query))
      case "path":
        return message.path
      case "braces":
        return "{{"
      default:
        return valueAt(payload(), [{ kind: "key", key: variable }])
    }
  }
  return (template, escape = textEscape) => {
    const text = template.render(read, escape)
    if (text === null) throw new Unrenderable("a template makes more text than it may")
    return text
  }
}

/** The value of a JSON body that is small enough to parse; else its text. */
export const payloadOf = ({ body }: Pick<Message, "body">): unknown => {
  const parsed = parseJson(body)
  return parsed.kind === "json" ? parsed.value : utf8(body)
}

/** The text that a template makes; it must not be empty. */
export const filled = (fill: Fill, one: DeliveryTemplate, setting: string, escape?: Escape): string => {
  // A lone surrogate has no UTF-8 form, and strict JSON parsers refuse it.
  const text = fill(one, escape).trim().toWellFormed()
  if (text === "") throw new Unrenderable(`config.${setting} makes an empty text of this event`)
  return text
}

/** The JSON value that a template makes; placeholders insert JSON. `escape` applies to placeholders within texts. */
export const filledJson = (
  fill: Fill,
  one: DeliveryTemplate,
  setting: string,
  escape: Escape = jsonEscape
): unknown => {
  const parsed = parseJson(fill(one, escape).toWellFormed())
  if (parsed.kind !== "json") throw new Unrenderable(`config.${setting} does not make JSON of this event`)
  return parsed.value
}
