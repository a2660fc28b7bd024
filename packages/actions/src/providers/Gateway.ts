import { AnyJson, needed, Path, setting, text } from "@tidegate/connectors/Settings"
import { isHeaderName, isSetByGateway, OneOf } from "@tidegate/model/AuthSettings"
import { Result, Schema } from "effect"
import { none } from "../AuthModes.ts"
import { entriesOf, requestInputs, valuesOf } from "../HttpRequest.ts"
import { calling, invalid, type Provider } from "../Provider.ts"

const id = (prefix: string, what: string) =>
  needed(
    text.check(
      Schema.isPattern(new RegExp(`^${prefix}_[0-9a-z]{1,64}$`), { message: `must be the id of ${what} (${prefix}_…)` })
    ),
    `the id of ${what}`
  )

const sampleId = "req_01k9b3v7w2fz8q4m6n5p1r0s7t"

export const gateway: Provider = {
  key: "gateway",
  name: "Gateway",
  description: "What the gateway itself does for the team.",
  icon_key: "gateway",
  manifest_version: "1.0.0",
  auth: [none],
  actions: [
    calling({
      key: "publish",
      name: "Publish",
      description:
        "Sends a request to one of the team's sources, which is then stored and routed like any other. At most 10 workflows may follow each other so.",
      category: "events",
      version: "1.0.0",
      inputs: {
        source_id: id("src", "a source of the team"),
        method: setting(OneOf(["POST", "PUT", "PATCH", "DELETE"]), "POST"),
        path: setting(Path.annotate({ description: "What follows the source's URL" }), "/"),
        ...requestInputs,
        body: setting(
          AnyJson.annotate({ description: "A text is sent as it is, anything else as JSON" }),
          null,
          "must be JSON"
        )
      },
      output: {
        type: "object",
        properties: { request_id: { type: "string" } },
        required: ["request_id"]
      },
      primary_output: "request_id",
      sample: {
        inputs: { source_id: "src_01k9b3v7w2fz8q4m6n5p1r0s7t", body: { id: "o_1" } },
        output: { request_id: sampleId }
      },
      rate_limit: null,
      call: ({ body, headers, method, path, query, source_id }) => {
        const wrong = entriesOf(headers).find(([name, value]) => {
          return !isHeaderName(name) || isSetByGateway(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value)
        })
        if (wrong !== undefined) {
          return Result.fail(invalid([{ path: "headers", message: "has what no sender may say in a header" }]))
        }
        const type = typeof body === "string" ? "text/plain; charset=utf-8" : "application/json"
        const [before = "/", behind = ""] = (path ?? "/").split("?", 2)
        const asked = new URLSearchParams(behind)
        for (const [name, value] of entriesOf(query)) asked.append(name, value)
        return Result.succeed({
          kind: "gateway",
          operation: {
            name: "publish",
            source_id,
            message: {
              method: method ?? "POST",
              path: before,
              query: asked.toString(),
              headers: { ...(body === null ? {} : { "content-type": type }), ...valuesOf(headers) },
              body: Buffer.from(body === null ? "" : typeof body === "string" ? body : JSON.stringify(body))
            }
          }
        })
      }
    }),
    calling({
      key: "lookup_request",
      name: "Look up a request",
      description: "Gives a request that the gateway has received for the team; `found` is false where there is none.",
      category: "events",
      version: "1.0.0",
      inputs: { request_id: id("req", "a request") },
      output: {
        type: "object",
        properties: {
          found: { type: "boolean" },
          request: {
            anyOf: [{ type: "object" }, { type: "null" }],
            description:
              "`{id, source_id, method, path, query, headers, body, received_at}`, the sender's credentials masked"
          }
        },
        required: ["found", "request"]
      },
      primary_output: "request",
      sample: {
        inputs: { request_id: sampleId },
        output: {
          found: true,
          request: {
            id: sampleId,
            source_id: "src_01k9b3v7w2fz8q4m6n5p1r0s7t",
            method: "POST",
            path: "/",
            query: {},
            headers: { "content-type": "application/json" },
            body: { id: "o_1" },
            received_at: "2026-01-01T00:00:00.000Z"
          }
        }
      },
      rate_limit: null,
      call: ({ request_id }) => Result.succeed({ kind: "gateway", operation: { name: "lookup_request", request_id } })
    }),
    calling({
      key: "replay_request",
      name: "Replay a request",
      description: "Sends a stored request through its source's connections once more, as a new request.",
      category: "events",
      version: "1.0.0",
      inputs: { request_id: id("req", "a request") },
      output: { type: "object", properties: { request_id: { type: "string" } }, required: ["request_id"] },
      primary_output: "request_id",
      sample: { inputs: { request_id: sampleId }, output: { request_id: sampleId } },
      rate_limit: null,
      call: ({ request_id }) => Result.succeed({ kind: "gateway", operation: { name: "replay_request", request_id } })
    })
  ]
}
