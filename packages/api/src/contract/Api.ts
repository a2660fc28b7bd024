import { HttpApi, OpenApi } from "effect/http-api"
import { ActionsApi } from "../actions/ActionsApi.ts"
import { AttemptsApi } from "../attempts/AttemptsApi.ts"
import { AuthApi } from "../auth/AuthApi.ts"
import { ChannelAlertsApi } from "../channel-alerts/ChannelAlertsApi.ts"
import { ChannelsApi } from "../channels/ChannelsApi.ts"
import { ConnectionsApi } from "../connections/ConnectionsApi.ts"
import { DataDeletionsApi } from "../data-deletions/DataDeletionsApi.ts"
import { DestinationsApi } from "../destinations/DestinationsApi.ts"
import { completeDocument } from "./OpenApiDocument.ts"
import { EventsApi } from "../events/EventsApi.ts"
import { FiltersApi } from "../filters/FiltersApi.ts"
import { FixturesApi } from "../fixtures/FixturesApi.ts"
import { FormatterApi } from "../formatter/FormatterApi.ts"
import { IgnoredEventsApi } from "../ignored-events/IgnoredEventsApi.ts"
import { IssuesApi } from "../issues/IssuesApi.ts"
import { MetricsApi } from "../metrics/MetricsApi.ts"
import { ProjectKeysApi } from "../project-keys/ProjectKeysApi.ts"
import { ProjectSecretsApi } from "../project-secrets/ProjectSecretsApi.ts"
import { ProviderAccountsApi } from "../provider-accounts/ProviderAccountsApi.ts"
import { PublicBinsApi } from "../public-bins/PublicBinsApi.ts"
import { RequestsApi } from "../requests/RequestsApi.ts"
import { SharesApi } from "../shares/SharesApi.ts"
import { SourceProvidersApi } from "../source-providers/SourceProvidersApi.ts"
import { SourceTypesApi } from "../source-types/SourceTypesApi.ts"
import { SourcesApi } from "../sources/SourcesApi.ts"
import { StreamsApi } from "../streams/StreamsApi.ts"
import { TeamsApi } from "../teams/TeamsApi.ts"
import { TransformationsApi } from "../transformations/TransformationsApi.ts"
import { WorkflowAggregatesApi } from "../workflow-aggregates/WorkflowAggregatesApi.ts"
import { WorkflowChangesApi } from "../workflow-changes/WorkflowChangesApi.ts"
import { WorkflowDecisionsApi } from "../workflow-decisions/WorkflowDecisionsApi.ts"
import { WorkflowValuesApi } from "../workflow-values/WorkflowValuesApi.ts"
import { WorkflowRunsApi } from "../workflow-runs/WorkflowRunsApi.ts"
import { WorkflowsApi } from "../workflows/WorkflowsApi.ts"
import { WorkflowTemplatesApi } from "../workflow-templates/WorkflowTemplatesApi.ts"
import { WorkflowTestsApi } from "../workflow-tests/WorkflowTestsApi.ts"

/** The control API. `HttpApiClient.make(Api)` is its client. Every route also answers under `/v1`. */
export class Api extends HttpApi.make("tidegate")
  .add(
    SourcesApi,
    ChannelsApi,
    DestinationsApi,
    ConnectionsApi,
    TransformationsApi,
    WorkflowsApi,
    WorkflowRunsApi,
    WorkflowAggregatesApi,
    WorkflowTestsApi,
    WorkflowDecisionsApi,
    WorkflowChangesApi,
    WorkflowValuesApi,
    WorkflowTemplatesApi,
    FiltersApi,
    ActionsApi,
    SourceTypesApi,
    SourceProvidersApi,
    ProviderAccountsApi,
    ChannelAlertsApi,
    RequestsApi,
    EventsApi,
    IgnoredEventsApi,
    AttemptsApi,
    AuthApi,
    TeamsApi,
    DataDeletionsApi,
    ProjectSecretsApi,
    ProjectKeysApi,
    SharesApi,
    PublicBinsApi,
    IssuesApi,
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
        "Sources receive requests, connections route them, and destinations receive events.",
        "Every route works with and without the prefix /v1.",
        "Errors are JSON with error, code, status, message and data. A known path returns 405 with `Allow` for other methods.",
        "Times are ISO 8601 in UTC. The bounds of time ranges can be ISO 8601, now, or now-<n><s|m|h|d>.",
        "An unknown member or parameter is a 400 that suggests the nearest name. With `Prefer: handling=lenient` it is ignored. New members may be added to answers."
      ].join(" "),
      transform: (generated) => completeDocument(generated as OpenApi.OpenAPISpec)
    })
  ) {}
