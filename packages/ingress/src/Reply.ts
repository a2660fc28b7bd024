import { type GatewayError, toResponse } from "@tidegate/model/GatewayError"
import type { Json } from "@tidegate/model/Rule"
import type { CompiledCustomResponse } from "@tidegate/rules/CustomResponse"
import type { RequestInput } from "@tidegate/rules/RequestInput"
import type { AnswerBody } from "@tidegate/verification/Provider"
import { providerOf } from "@tidegate/verification/Providers"

/** The answer to a sender. */
export interface Reply {
  readonly status: number
  readonly contentType: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How a source answers accepted requests. */
export interface ReplySettings {
  /** The source's custom response, which takes precedence over the answer of its type. */
  readonly customResponse: CompiledCustomResponse | null
  readonly acknowledgement: Acknowledgement
}

/** The acknowledgement that a sender of this type expects, from its row in the provider table. */
export interface Acknowledgement {
  readonly status: 200 | 204
  readonly body: AnswerBody
  /** For an interaction: only the user who started it sees the follow-up. */
  readonly ephemeral: boolean
}

export const acknowledgementOf = (type: string, ephemeral: boolean): Acknowledgement => {
  const answer = providerOf(type)?.answer
  return { status: answer?.status === "204" ? 204 : 200, body: answer?.body ?? "any", ephemeral }
}

const json = "application/json; charset=utf-8"
const none = {}

/** The answer to a rejected request. */
export const rejectedReply = (
  { acknowledgement }: ReplySettings,
  error: GatewayError,
  headers: Reply["headers"]
): Reply => {
  const { body, status } = toResponse(error)
  return acknowledgement.body === "always empty"
    ? { status, contentType: null, headers, body: "" }
    : { status, contentType: json, headers, body: JSON.stringify(body) }
}

/** The answer to a request that was stored and is routed: the custom response, else the answer of the source's type. */
export const acceptedReply = (settings: ReplySettings, requestId: string, input: () => RequestInput): Reply => {
  if (settings.customResponse !== null) {
    const about = input()
    const custom = settings.customResponse.respond({
      requestId,
      method: about.method,
      path: about.path,
      headers: about.headers,
      get query() {
        return about.query
      },
      body: about.body
    })
    if (custom !== null) return custom
  }
  const { body, ephemeral, status } = settings.acknowledgement
  const reply = (contentType: string | null, body: string): Reply => ({ status, contentType, headers: none, body })
  const queued = () => reply(json, `{"ok":true,"queued":true,"transport":"queue","request_id":"${requestId}"}`)
  switch (body) {
    case "any":
      return queued()
    case "empty":
    case "always empty":
      return reply(null, "")
    case "empty for forms":
      return mediaType(input()) === "application/x-www-form-urlencoded" ? reply(null, "") : queued()
    case "TwiML":
      return mediaType(input()) === "application/json" ? queued() : reply(xml, noInstructions)
    case "interaction":
      return reply(json, JSON.stringify(interactionReply(input().body(), ephemeral)))
    default:
      return reply(json, '{"type":"message","text":"Received."}')
  }
}

const xml = "text/xml; charset=utf-8"
const noInstructions = '<?xml version="1.0" encoding="UTF-8"?><Response/>'

const mediaType = ({ headers }: RequestInput): string => {
  const type = headers["content-type"]
  return typeof type === "string" ? type.split(";", 1)[0]!.trim().toLowerCase() : ""
}

const autocomplete = 4

/**
 * The answer that an interaction requires within three seconds: "deferred" (5), which the receiver of the event follows up; an
 * autocomplete (4) cannot be deferred and gets no choices (8).
 */
const interactionReply = (interaction: Json, ephemeral: boolean): Json =>
  typeof interaction === "object" &&
  interaction !== null &&
  "type" in interaction &&
  interaction["type"] === autocomplete
    ? { type: 8, data: { choices: [] } }
    : ephemeral
      ? { type: 5, data: { flags: 64 } }
      : { type: 5 }
