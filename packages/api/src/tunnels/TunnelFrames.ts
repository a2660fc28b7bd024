import type { TunnelJob, TunnelResult } from "@tidegate/entities/Destination/tunnel/TunnelProtocol"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { type JsonLimits, parseJson } from "@tidegate/json/JsonText"
import { bodyMember } from "./BodyMember.ts"

/*
 * The messages over a tunnel, as frames of JSON text. A client is a stranger: its messages are limited before they are parsed,
 * and only what an HTTP target could have answered is accepted.
 */

/** The largest frame of a client, in bytes: the kept part of a body, in base64 or with JSON escapes. */
export const largestResult = 512 * 1024
const maxHeaders = 100
const maxHeaderBytes = 16 * 1024
const longestError = 200

const limits: JsonLimits = { values: 5_000, levels: 8, unlikeMembers: 2_000, escapes: 200_000 }

export const helloFrame = (cliId: string, destination: string, heartbeatSeconds: number, maxUnderWay: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      type: "hello",
      cli_id: cliId,
      destination_id: destination,
      heartbeat_seconds: heartbeatSeconds,
      max_in_flight: maxUnderWay
    })
  )

export const pongFrame = Buffer.from('{"type":"pong"}')

/** One delivery. The request is a JSON object already; its body is added as a member. */
export const deliveryFrame = ({ body, job_id, request, timeout_ms }: TunnelJob): Buffer =>
  Buffer.from(
    `{"type":"delivery","job_id":${JSON.stringify(job_id)},"timeout_ms":${timeout_ms},"request":${request.slice(0, -1)},${bodyMember(body)}}}`
  )

export type Said =
  | { readonly kind: "result"; readonly result: TunnelResult }
  | { readonly kind: "ping" }
  | { readonly kind: "unexpected" }

const unexpected: Said = { kind: "unexpected" }

type Members = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Parses a client's message. `isUnderWay`: whether a job was sent to it and is not answered. */
export const readFrame = (frame: Uint8Array, isUnderWay: (job: string) => boolean): Said => {
  const parsed = parseJson(frame, limits)
  if (parsed.kind !== "json" || !isObject(parsed.value)) return unexpected
  const { job_id, type } = parsed.value
  if (type === "ping") return { kind: "ping" }
  if (type !== "delivery_result" || typeof job_id !== "string" || !isUnderWay(job_id)) return unexpected
  return { kind: "result", result: resultOf(job_id, parsed.value) }
}

const resultOf = (job_id: string, frame: Members): TunnelResult => {
  const body = bodyOf(frame)
  const status = statusOf(frame["status"])
  if (body === null || status === null) return notUnderstood(job_id)
  const kept = body.length > maxCapturedBytes ? Buffer.from(body.subarray(0, maxCapturedBytes)) : body
  const error = frame["error"]
  return {
    job_id,
    status,
    headers: headersOf(frame["headers"]),
    body: kept,
    body_truncated: frame["body_truncated"] === true || kept.length < body.length,
    failure:
      typeof error === "string"
        ? { code: "CLI", message: `the local target could not be reached: ${plain(error)}` }
        : null
  }
}

const notUnderstood = (job_id: string): TunnelResult => ({
  job_id,
  status: null,
  headers: {},
  body: Buffer.alloc(0),
  body_truncated: false,
  failure: { code: "PROTOCOL_ERROR", message: "the tunnel's client sent an answer that is not a result" }
})

const statusOf = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599 ? value : null

/** Null: it is invalid. An absent body is empty. */
const bodyOf = ({ body, body_base64 }: Members): Buffer | null => {
  if (typeof body === "string" && (body_base64 ?? null) === null) return Buffer.from(body)
  if ((body ?? null) !== null) return null
  if ((body_base64 ?? null) === null) return Buffer.alloc(0)
  return typeof body_base64 === "string" ? Buffer.from(body_base64, "base64") : null
}

/** The headers that an HTTP target could have sent. */
const headersOf = (value: unknown): TunnelResult["headers"] => {
  const headers = Object.create(null) as Record<string, string | ReadonlyArray<string>>
  if (!isObject(value)) return headers
  let bytesLeft = maxHeaderBytes
  let left = maxHeaders
  for (const [name, given] of Object.entries(value)) {
    const values = (Array.isArray(given) ? given : [given]).filter(isHeaderValue)
    const bytes = values.reduce((sum, one) => sum + name.length + one.length, 0)
    left -= values.length
    bytesLeft -= bytes
    if (left < 0 || bytesLeft < 0) break
    if (values.length === 0 || !/^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/i.test(name)) continue
    headers[name.toLowerCase()] = values.length === 1 ? values[0]! : values
  }
  return headers
}

const isHeaderValue = (value: unknown): value is string =>
  typeof value === "string" && /^[\t\x20-\x7e\xa0-\xff]*$/.test(value)

/** A client's text as one short line that can be stored and shown. */
const plain = (text: string): string =>
  text
    .slice(0, longestError)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()
