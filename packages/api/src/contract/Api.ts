import { HttpApi, OpenApi } from "effect/http-api"
import { AttemptsApi } from "./AttemptsApi.ts"
import { ConnectionsApi } from "./ConnectionsApi.ts"
import { DestinationsApi } from "./DestinationsApi.ts"
import { EventsApi } from "./EventsApi.ts"
import { RequestsApi } from "./RequestsApi.ts"
import { SourcesApi } from "./SourcesApi.ts"
import { TransformationsApi } from "./TransformationsApi.ts"

/** The control API. `HttpApiClient.make(Api)` is its client. Every route also answers under `/v1`. */
export class Api extends HttpApi.make("tidegate")
  .add(SourcesApi, DestinationsApi, ConnectionsApi, TransformationsApi, RequestsApi, EventsApi, AttemptsApi)
  .annotateMerge(
    OpenApi.annotations({
      title: "Tidegate control API",
      version: "1.0.0",
      description: [
        "Sources receive requests, connections route them, destinations are delivered to.",
        "Every route works with and without the prefix /v1.",
        "Errors are JSON with error, code, status, message and data.",
        "Times are ISO 8601 in UTC; windows take ISO 8601, now, or now-<n><s|m|h|d>."
      ].join(" ")
    })
  ) {}
