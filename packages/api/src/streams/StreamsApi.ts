import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { StreamFrame } from "@tidegate/model/CapturedRequest"
import { TunnelFrame } from "@tidegate/model/TunnelFrame"
import { ApiErrors } from "../contract/ApiError.ts"
import { capturedRequest, ids } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Live requests, and deliveries to a person's own machine, over a WebSocket. */
export class StreamsApi extends HttpApiGroup.make("streams")
  .add(
    HttpApiEndpoint.get("watch", "/bins/:id/stream", {
      params: Parameters.pathOf("source"),
      query: Parameters.onlyTeam,
      success: StreamFrame.pipe(HttpApiSchema.status(101)),
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "watchBin",
        // It authorizes on its own, because a page sends subprotocols where other clients send headers.
        permission: "public",
        summary: "Watch a bin or a source",
        description: [
          "Opens a WebSocket. Each text frame is a StreamFrame: first a hello, then every request that is stored.",
          "The credential is in the headers of the call (`Authorization`, `x-team-id`, `x-bin-token`). A browser sends it in subprotocols:",
          "`token.<base64url>` (a bin's token, an API key or a session's token), `team.<base64url>` (the team, or a credential of it), and `bin.v1`, which the gateway selects.",
          "A refused caller is connected, and then disconnected with a close code: 4401, 4403, 4404, or 4410 if the bin has expired. After 1012 and 1013, connect again."
        ].join(" "),
        answer: { type: "request", request: capturedRequest },
        errors: ["VALIDATION_ERROR", "UPGRADE_REQUIRED", "RATE_LIMITED", "INTERNAL_ERROR", "QUEUE_UNAVAILABLE"]
      })
    )
  )
  .add(
    HttpApiEndpoint.get("connect", "/connect", {
      query: {
        ...Parameters.onlyTeam,
        destination_id: Parameters.Id.annotate({ description: "A CLI destination", examples: [ids.destination] }),
        local_url: Schema.optionalKey(
          Schema.String.check(Characters.upTo(2_048)).annotate({
            description: "The URL of the local program, which attempts show",
            examples: ["http://localhost:3000"]
          })
        )
      },
      success: TunnelFrame.pipe(HttpApiSchema.status(101)),
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "connectTunnel",
        // It authorizes on its own, for the scope `tunnel:connect`: a refused client gets a close code.
        permission: "public",
        summary: "Open a tunnel",
        description: [
          "Opens a WebSocket. Each text frame of the gateway is a TunnelFrame: first a hello, then every delivery of the CLI destination.",
          "The client answers each delivery with a frame. `docs/tunnel.md` describes all frames.",
          "The credential is in the headers of the call (`Authorization`, `x-team-id`), in `x-api-key`, or in subprotocols as for streams.",
          "A refused caller is connected, and then disconnected with a close code: 4401, 4403, 4404, or 4409 if a newer session has taken over."
        ].join(" "),
        answer: {
          type: "hello",
          cli_id: "cli_01jd8z6p3k5m7n9qrs2tv4wx6y",
          destination_id: ids.destination,
          heartbeat_seconds: 30,
          max_in_flight: 50
        },
        errors: ["VALIDATION_ERROR", "UPGRADE_REQUIRED", "RATE_LIMITED", "INTERNAL_ERROR", "QUEUE_UNAVAILABLE"]
      })
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Streams",
      description: "WebSockets that show requests as they arrive, and that deliver events to a local program."
    })
  ) {}
