import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { errorOf } from "../contract/ApiError.ts"
import { accepted, webhook } from "../contract/Examples.ts"
import { describe, type OperationJson } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** The ingress URLs, only for the document: ingress (`@tidegate/ingress`) answers them, before any router. */

const Receipt = Schema.Struct({
  ok: Schema.Literal(true),
  queued: Schema.Literal(true),
  transport: Schema.Literal("queue"),
  request_id: Schema.String
}).annotate({
  identifier: "Receipt",
  description: "The request is stored. A source may be configured to answer differently."
})

const codes: ReadonlyArray<ErrorCode> = [
  "SOURCE_AUTH_FAILED",
  "SOURCE_DISABLED_INGRESS",
  "SERVICE_WORKER_REFUSED",
  "LOOP_DETECTED",
  "NOT_FOUND",
  "SOURCE_METHOD_NOT_ALLOWED",
  "REQUEST_TIMEOUT",
  "PAYLOAD_TOO_LARGE",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "UPSTREAM_ERROR",
  "QUEUE_UNAVAILABLE",
  "UPSTREAM_TIMEOUT"
]

const endpoint = {
  params: { source_id: Parameters.pathOf("source").id },
  success: Receipt,
  error: codes.map(errorOf)
}

/** Any bytes; their content type only decides how rules read them. */
const body = {
  description: "Any bytes, at most 10 MiB. They are stored unchanged.",
  required: false,
  content: { "application/json": { schema: {}, example: webhook }, "*/*": { schema: {} } }
}

const description = [
  "Stores the request, and then answers. A path and a query after the id are part of the request.",
  "A custom response, or the upstream of proxy mode, replaces the answer. A handshake is answered as its provider requires.",
  "A rejected request is stored too, with its cause."
].join(" ")

const about = (id: string, how: string) =>
  OpenApi.annotations({
    identifier: id,
    summary: `Send a request to a source${how}`,
    description,
    transform: (operation) => ({
      ...describe({ answer: accepted, errors: codes, permission: "public" })(operation as OperationJson),
      // It has no version and no key: the source decides who may send.
      servers: [{ url: "/", description: "The gateway's public URL" }],
      ...(operation["requestBody"] === undefined ? {} : { requestBody: body })
    })
  })

const path = "/e/:source_id"
const withBody = { ...endpoint, payload: Schema.Json }

class Ingress extends HttpApiGroup.make("ingress")
  .add(
    HttpApiEndpoint.post("post", path, withBody).annotateMerge(about("send", "")),
    HttpApiEndpoint.put("put", path, withBody).annotateMerge(about("sendByPut", " by PUT")),
    HttpApiEndpoint.patch("patch", path, withBody).annotateMerge(about("sendByPatch", " by PATCH")),
    HttpApiEndpoint.delete("delete", path, endpoint).annotateMerge(about("sendByDelete", " by DELETE")),
    HttpApiEndpoint.get("get", path, endpoint).annotateMerge(
      about("sendByGet", " by GET, where its allowed_http_methods name it")
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Ingress",
      description: "The public URLs of the sources: `<public url>/e/{source_id}`."
    })
  ) {}

export class IngressApi extends HttpApi.make("ingress").add(Ingress) {}
