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
          "A WebSocket. Each of its text frames is one StreamFrame: a hello, and from then on every request that is stored.",
          "Who asks is told by the headers of any call (`Authorization`, `x-team-id`, `x-bin-token`) or, in a browser, by subprotocols:",
          "`token.<base64url>` (a bin's token, an API key or a session's token), `team.<base64url>` (the team, or a credential of it), and `bin.v1`, which is answered.",
          "Who may not is let in and then told so by the close code: 4401, 4403, 4404, or 4410 when the bin is over; 1012 and 1013 say to come again."
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
            description: "Where the local program is, to be shown with attempts",
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
        summary: "Hold a tunnel open",
        description: [
          "A WebSocket. Each of the gateway's text frames is one TunnelFrame: a hello, and from then on every delivery of the CLI destination, each of which",
          "the client answers with a frame of its own: `docs/tunnel.md` has them all.",
          "Who asks is told by the headers of any call (`Authorization`, `x-team-id`), by `x-api-key`, or by subprotocols as a stream is.",
          "Who may not is let in and then told so by the close code: 4401, 4403, 4404; 4409 when a newer session has taken over."
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
      description: "Requests as they come, and deliveries to somebody's own machine, over a WebSocket."
    })
  ) {}
