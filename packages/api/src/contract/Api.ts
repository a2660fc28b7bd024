import { HttpApi, OpenApi } from "effect/http-api"
import { AttemptsApi } from "./AttemptsApi.ts"
import { ConnectionsApi } from "./ConnectionsApi.ts"
import { DestinationsApi } from "./DestinationsApi.ts"
import { completeDocument } from "./Document.ts"
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
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      servers: [
        { url: "/v1", description: "Additive changes only" },
        { url: "/", description: "The same routes without the prefix" }
      ],
      description: [
        "Sources receive requests, connections route them, destinations are delivered to.",
        "Every route works with and without the prefix /v1.",
        "Errors are JSON with error, code, status, message and data; a path that is known answers 405 with `Allow` to other methods.",
        "Times are ISO 8601 in UTC; windows take ISO 8601, now, or now-<n><s|m|h|d>.",
        "Members that nobody knows are ignored in what is sent, unless said otherwise, and more may come in what is answered."
      ].join(" "),
      transform: (generated) => completeDocument(generated as OpenApi.OpenAPISpec)
    })
  ) {}
