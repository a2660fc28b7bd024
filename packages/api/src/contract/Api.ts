import { HttpApi, OpenApi } from "effect/http-api"
import type { AnyResource } from "@tidegate/resources/Resource"
import { plain } from "@tidegate/resources/Resources"
import { ActionsApi } from "./ActionsApi.ts"
import { AttemptsApi } from "./AttemptsApi.ts"
import { AuthApi } from "./AuthApi.ts"
import { ConnectionsApi } from "./ConnectionsApi.ts"
import { DestinationsApi } from "./DestinationsApi.ts"
import { completeDocument } from "./Document.ts"
import { EventsApi } from "./EventsApi.ts"
import { FiltersApi } from "./FiltersApi.ts"
import { FixturesApi } from "./FixturesApi.ts"
import { FormatterApi } from "./FormatterApi.ts"
import { groupOf } from "./Group.ts"
import { IgnoredEventsApi } from "./IgnoredEventsApi.ts"
import { MetricsApi } from "./MetricsApi.ts"
import { ProjectKeysApi } from "./ProjectKeysApi.ts"
import { ProjectSecretsApi } from "./ProjectSecretsApi.ts"
import { PublicBinsApi } from "./PublicBinsApi.ts"
import { RequestsApi } from "./RequestsApi.ts"
import { SharesApi } from "./SharesApi.ts"
import { SourcesApi } from "./SourcesApi.ts"
import { StreamsApi } from "./StreamsApi.ts"
import { TeamsApi } from "./TeamsApi.ts"
import { TransformationsApi } from "./TransformationsApi.ts"
import { WorkflowAggregatesApi } from "./WorkflowAggregatesApi.ts"
import { WorkflowsApi } from "./WorkflowsApi.ts"
import { WorkflowTemplatesApi } from "./WorkflowTemplatesApi.ts"
import { WorkflowTestsApi } from "./WorkflowTestsApi.ts"

type Groups<Resources extends ReadonlyArray<AnyResource>> = {
  readonly [Place in keyof Resources]: ReturnType<typeof groupOf<Resources[Place]>>
}

/** The groups of the resources that are said by their declarations alone. */
const plainGroups = (plain as ReadonlyArray<AnyResource>).map((resource) => groupOf(resource)) as unknown as Groups<
  typeof plain
>

/** The control API. `HttpApiClient.make(Api)` is its client. Every route also answers under `/v1`. */
export class Api extends HttpApi.make("tidegate")
  .add(
    SourcesApi,
    DestinationsApi,
    ConnectionsApi,
    TransformationsApi,
    WorkflowsApi,
    WorkflowAggregatesApi,
    WorkflowTestsApi,
    WorkflowTemplatesApi,
    FiltersApi,
    ActionsApi,
    ...plainGroups,
    RequestsApi,
    EventsApi,
    IgnoredEventsApi,
    AttemptsApi,
    AuthApi,
    TeamsApi,
    ProjectSecretsApi,
    ProjectKeysApi,
    SharesApi,
    PublicBinsApi,
    MetricsApi,
    FixturesApi,
    FormatterApi,
    StreamsApi
  )
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
        "A member or a parameter that nobody knows is 400, with the nearest name; `Prefer: handling=lenient` has it left out. More members may come in what is answered."
      ].join(" "),
      transform: (generated) => completeDocument(generated as OpenApi.OpenAPISpec)
    })
  ) {}
