import { loopHeader } from "@tidegate/model/HeaderRules"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { parseQuery, type Values } from "@tidegate/model/Message"
import type { FilterInput } from "@tidegate/rules/Filter"
import { type Execution, type Isolation, type Sandbox, type TransformRequest } from "@tidegate/sandbox/Sandbox"
import type { ExecutionRecord, TransformedData } from "@tidegate/storage/journal/RoutingRecord"
import { isStorable } from "@tidegate/resources/Input"
import type { PendingRequest } from "./PendingRequest.ts"

/** A transformation, ready to run. */
export interface Transformation {
  readonly id: string
  readonly code: string
  readonly codeHash: string
  readonly isolation: Isolation
  readonly env: Readonly<Record<string, string>>
}

/** Where a request is going. */
export interface RouteIds {
  readonly connectionId: string
  readonly destinationId: string
}

/** The result of a transformation for a request: `input` is what rules see from here on. `pinned`: see `Execution`. */
export type Transformed = { readonly pinned: string | null } & (
  | {
      readonly kind: "passed"
      readonly execution: ExecutionRecord
      readonly data: TransformedData | null
      readonly input: FilterInput
    }
  | { readonly kind: "failed"; readonly execution: ExecutionRecord; readonly message: string }
)

/** It ran, or the sandbox cannot run anything now, or its result cannot be handled for an unexpected reason. */
export type TransformEnd =
  | Transformed
  | { readonly kind: "unavailable" }
  | { readonly kind: "broken"; readonly cause: unknown }

/**
 * Runs a transformation over a request, which becomes the event `eventId`, and calls back, possibly at once. Whatever the code does is a
 * result. The returned function cancels it if it has not begun.
 */
export const transform = (
  sandbox: Sandbox["Service"],
  transformation: Transformation,
  pending: PendingRequest,
  ids: RouteIds,
  eventId: string,
  done: (end: TransformEnd) => void
): (() => void) => {
  const { input, received } = pending
  const request: TransformRequest = {
    headers: received.headers,
    get body() {
      return input.body()
    },
    query: received.query,
    parsed_query: input.query,
    path: received.path,
    method: received.method
  }
  return sandbox.start(
    {
      teamId: pending.teamId,
      code: transformation.code,
      codeHash: transformation.codeHash,
      isolation: transformation.isolation,
      env: transformation.env,
      request,
      bodyText: input.jsonText,
      context: {
        connection_id: ids.connectionId,
        source_id: pending.sourceId,
        destination_id: ids.destinationId,
        request_id: pending.id,
        team_id: pending.teamId,
        timestamp: new Date(pending.ingestedAt).toISOString()
      }
    },
    (execution) => {
      let end: TransformEnd
      try {
        end = transformed(transformation, pending, request, execution, eventId)
      } catch (cause) {
        end = { kind: "broken", cause }
      }
      done(end)
    },
    () => done({ kind: "unavailable" })
  )
}

const transformed = (
  transformation: Transformation,
  pending: PendingRequest,
  request: TransformRequest,
  execution: Execution,
  eventId: string
): Transformed => {
  const id = sibling(prefixes.execution, eventId)
  const pinned = execution.pinned === null ? null : storable(execution.pinned)
  if (execution.request === null) {
    const { code, line, message } = execution.error ?? { code: "RUNTIME_ERROR", line: null, message: "" }
    const placed = line === null ? message : `${message} (line ${line})`
    return failed(record(id, transformation, execution, { code, message: placed }), pinned)
  }
  const made = compare(request, execution.request, execution.written, pending, eventId)
  if (made === "unstorable") {
    const error = { code: "INVALID_OUTPUT", message: "the path, query or headers hold NUL or broken Unicode" }
    return failed(record(id, transformation, execution, error), pinned)
  }
  return { kind: "passed", pinned, execution: record(id, transformation, execution, null), ...made }
}

const failed = (execution: ExecutionRecord, pinned: string | null): Extract<Transformed, { kind: "failed" }> => ({
  kind: "failed",
  pinned,
  execution,
  message: execution.errorMessage ?? ""
})

const longestMessage = 2_000

/** Text that the code produced, in a form that can be stored. */
const storable = (text: string): string => text.slice(0, longestMessage).replaceAll("\u0000", "\ufffd").toWellFormed()

const record = (
  id: string,
  transformation: Transformation,
  execution: Execution,
  error: { readonly code: string; readonly message: string } | null
): ExecutionRecord => ({
  id,
  transformationId: transformation.id,
  codeHash: transformation.codeHash,
  errorCode: error?.code ?? null,
  errorMessage: error === null ? null : storable(error.message),
  logLevel: error === null ? execution.logLevel : "fatal",
  failed: error !== null || execution.logLevel === "error" || execution.logLevel === "fatal",
  logs: JSON.stringify(execution.logs),
  duration: Math.round(execution.durationMs * 1000),
  memoryBytes: Math.round(execution.memoryBytes)
})

/**
 * What the transformation has changed, ready to be stored, or nothing. The body is stored again only when it differs, so that an
 * unchanged body is sent byte for byte as it was received.
 */
const compare = (
  before: TransformRequest,
  after: TransformRequest,
  written: Written | null,
  pending: PendingRequest,
  eventId: string
): { readonly data: TransformedData | null; readonly input: FilterInput } | "unstorable" => {
  const described = written === null ? after.headers : describeBody(before.headers, after.headers, written)
  const headers = withChain(before.headers, described)
  const headersText = JSON.stringify(headers)
  if (!isStorable(after.path) || !isStorable(after.query)) return "unstorable"
  const bytes = written === null ? null : bodyBytes(after, written)
  const input: FilterInput = {
    method: after.method,
    path: after.path,
    query: after.query === before.query ? before.parsed_query : parseQuery(after.query),
    headers,
    body: () => after.body
  }
  const same =
    written === null &&
    after.method === before.method &&
    after.path === before.path &&
    after.query === before.query &&
    headersText === JSON.stringify(before.headers)
  if (same) return { data: null, input }
  const data: TransformedData = {
    id: sibling(prefixes.eventData, eventId),
    method: after.method,
    path: after.path,
    query: after.query,
    headers: headersText,
    values: headers,
    body: bytes,
    bodySize: bytes?.length ?? pending.body.length
  }
  return { data, input }
}

/** Code can neither remove nor forge the headers that count how often a request has led back to the gateway. */
const withChain = (before: Values, after: Values): Values => {
  const chain = before[loopHeader]
  if (chain === after[loopHeader]) return after
  if (chain !== undefined) return { ...after, [loopHeader]: chain }
  const { [loopHeader]: _, ...rest } = after
  return rest
}

type Written = NonNullable<Execution["written"]>

const noBody = new Uint8Array(0)

/** Text is sent as it is, null as no body, and everything else as the JSON text that it was written as. */
const bodyBytes = (after: TransformRequest, { isText, json }: Written): Uint8Array => {
  if (isText) return Buffer.from(typeof after.body === "string" ? after.body : json)
  return json === "null" ? noBody : Buffer.from(json)
}

const withoutEncoding = (headers: Values): Values => {
  const { "content-encoding": _, ...rest } = headers
  return rest
}

/** When headers that described the old body were left unchanged or are missing, they are set to describe the new one. */
const describeBody = (before: Values, after: Values, { isText, json }: Written): Values => {
  const kept = (name: string) =>
    before[name] === after[name] || JSON.stringify(after[name]) === JSON.stringify(before[name])
  const headers = after["content-encoding"] !== undefined && kept("content-encoding") ? withoutEncoding(after) : after
  const type = headers["content-type"]
  const isJson = typeof type === "string" && /[/+]json\b/i.test(type)
  return isText || json === "null" || isJson || (type !== undefined && !kept("content-type"))
    ? headers
    : { ...headers, "content-type": "application/json" }
}
