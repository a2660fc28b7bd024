import { HttpApi, OpenApi } from "effect/http-api"
import type { AnyResource } from "@tidegate/resources/Resource"
import { plain } from "@tidegate/resources/Resources"
import { ActionsApi } from "../actions/ActionsApi.ts"
import { AttemptsApi } from "../attempts/AttemptsApi.ts"
import { AuthApi } from "../auth/AuthApi.ts"
import { ConnectionsApi } from "../connections/ConnectionsApi.ts"
import { DestinationsApi } from "../destinations/DestinationsApi.ts"
import { completeDocument } from "./OpenApiDocument.ts"
import { EventsApi } from "../events/EventsApi.ts"
import { FiltersApi } from "../filters/FiltersApi.ts"
import { FixturesApi } from "../fixtures/FixturesApi.ts"
import { FormatterApi } from "../formatter/FormatterApi.ts"
import { groupOf } from "./Group.ts"
import { IgnoredEventsApi } from "../ignored-events/IgnoredEventsApi.ts"
import { MetricsApi } from "../metrics/MetricsApi.ts"
import { ProjectKeysApi } from "../project-keys/ProjectKeysApi.ts"
import { ProjectSecretsApi } from "../project-secrets/ProjectSecretsApi.ts"
import { PublicBinsApi } from "../public-bins/PublicBinsApi.ts"
import { RequestsApi } from "../requests/RequestsApi.ts"
import { SharesApi } from "../shares/SharesApi.ts"
import { SourcesApi } from "../sources/SourcesApi.ts"
import { StreamsApi } from "../streams/StreamsApi.ts"
import { TeamsApi } from "../teams/TeamsApi.ts"
import { TransformationsApi } from "../transformations/TransformationsApi.ts"
import { WorkflowAggregatesApi } from "../workflow-aggregates/WorkflowAggregatesApi.ts"
import { WorkflowsApi } from "../workflows/WorkflowsApi.ts"
import { WorkflowTemplatesApi } from "../workflow-templates/WorkflowTemplatesApi.ts"
import { WorkflowTestsApi } from "../workflow-tests/WorkflowTestsApi.ts"

type Groups<Resources extends ReadonlyArray<AnyResource>> = {
  readonly [Place in keyof Resources]: ReturnType<typeof groupOf<Resources[Place]>>
}

/** The groups of the resources that their declarations define completely. */
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
