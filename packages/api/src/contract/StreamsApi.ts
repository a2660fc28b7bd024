import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { StreamFrame } from "@tidegate/model/CapturedRequest"
import { ApiErrors } from "./ApiError.ts"
import { capturedRequest } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

/** Requests as they come, over a WebSocket. */
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
        // It asks by itself: a page says by subprotocols what others say by headers.
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
  .annotateMerge(
    OpenApi.annotations({
      title: "Streams",
      description: "Requests as they come, over a WebSocket."
    })
  ) {}
