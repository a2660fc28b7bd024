import { Effect, type FileSystem, Layer, type Path } from "effect"
import type { Sharding } from "effect/cluster/Sharding"
import type { Etag, HttpPlatform, HttpRouter } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Feed } from "@tidegate/coordination/Feed"
import type { RedisStatus } from "@tidegate/coordination/Coordination"
import type { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import type { Egress } from "@tidegate/egress/Egress"
import { ProviderAccounts } from "@tidegate/entities/accounts/ProviderAccounts"
import { ProviderCalls } from "@tidegate/entities/accounts/ProviderCalls"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { Api } from "./contract/Api.ts"
import * as ActionHandlers from "./actions/ActionHandlers.ts"
import * as AttemptHandlers from "./attempts/AttemptHandlers.ts"
import * as AuthHandlers from "./auth/AuthHandlers.ts"
import * as Authorization from "./handlers/Authorization.ts"
import type { Stores } from "./handlers/Calls.ts"
import * as ChannelAlertHandlers from "./channel-alerts/ChannelAlertHandlers.ts"
import * as ChannelHandlers from "./channels/ChannelHandlers.ts"
import * as ConnectionHandlers from "./connections/ConnectionHandlers.ts"
import * as DataDeletionHandlers from "./data-deletions/DataDeletionHandlers.ts"
import * as DestinationHandlers from "./destinations/DestinationHandlers.ts"
import * as EventHandlers from "./events/EventHandlers.ts"
import * as IgnoredEventHandlers from "./ignored-events/IgnoredEventHandlers.ts"
import * as FilterHandlers from "./filters/FilterHandlers.ts"
import * as FixtureHandlers from "./fixtures/FixtureHandlers.ts"
import * as FormatterHandlers from "./formatter/FormatterHandlers.ts"
import * as IssueHandlers from "./issues/IssueHandlers.ts"
import * as MetricsHandlers from "./metrics/MetricsHandlers.ts"
import * as ProjectKeyHandlers from "./project-keys/ProjectKeyHandlers.ts"
import * as ProjectSecretHandlers from "./project-secrets/ProjectSecretHandlers.ts"
import * as ProviderAccountHandlers from "./provider-accounts/ProviderAccountHandlers.ts"
import * as PublicBinHandlers from "./public-bins/PublicBinHandlers.ts"
import * as RequestHandlers from "./requests/RequestHandlers.ts"
import * as ShareHandlers from "./shares/ShareHandlers.ts"
import * as SourceHandlers from "./sources/SourceHandlers.ts"
import * as SourceProviderHandlers from "./source-providers/SourceProviderHandlers.ts"
import * as SourceTypeHandlers from "./source-types/SourceTypeHandlers.ts"
import * as StreamHandlers from "./streams/StreamHandlers.ts"
import * as TeamHandlers from "./teams/TeamHandlers.ts"
import * as TransformationHandlers from "./transformations/TransformationHandlers.ts"
import * as WorkflowAggregateHandlers from "./workflow-aggregates/WorkflowAggregateHandlers.ts"
import * as WorkflowChangeHandlers from "./workflow-changes/WorkflowChangeHandlers.ts"
import * as WorkflowDecisionHandlers from "./workflow-decisions/WorkflowDecisionHandlers.ts"
import * as WorkflowRunHandlers from "./workflow-runs/WorkflowRunHandlers.ts"
import * as WorkflowValueHandlers from "./workflow-values/WorkflowValueHandlers.ts"
import * as WorkflowHandlers from "./workflows/WorkflowHandlers.ts"
import * as WorkflowTemplateHandlers from "./workflow-templates/WorkflowTemplateHandlers.ts"
import * as WorkflowTestHandlers from "./workflow-tests/WorkflowTestHandlers.ts"
import { Credentials } from "./Credentials.ts"
import { IdTokens } from "./IdTokens.ts"
import { KeyAudit } from "./KeyAudit.ts"
import { KeyLimits } from "./KeyLimits.ts"
import { Sockets } from "./streams/Sockets.ts"
import { Streams } from "./streams/Streams.ts"
import { Watches } from "./streams/Watches.ts"
import { SignInSettings } from "./SignInSettings.ts"
import * as CallTelemetry from "./CallTelemetry.ts"
import * as DashboardPage from "./dashboard/DashboardPage.ts"
import * as ProviderSignIn from "./dashboard/ProviderSignIn.ts"
import * as DecisionPage from "./DecisionPage.ts"
import * as DocsPage from "./DocsPage.ts"
import * as GuidePages from "./GuidePages.ts"
import type { IngressSender } from "@tidegate/entities/Source/IngressSender"
import * as PublishedDocument from "./PublishedDocument.ts"
import { publishedDocument } from "./PublishedDocument.ts"
import * as UnmatchedRoutes from "./UnmatchedRoutes.ts"
import * as WorkflowSchema from "./WorkflowSchema.ts"

/** What an HTTP server's layer provides to its routes. */
type Platform = Etag.Generator | FileSystem.FileSystem | HttpPlatform.HttpPlatform | Path.Path

/** The services that the API needs. */
type Needed =
  | Egress
  | IngressSender
  | Platform
  | RateLimiter
  | RedisStatus
  | Secrets
  | Sharding
  | Sockets
  | Stores
  | Streams

/** Reads the API's document, before any lease is held: later it would block the event loop during a call. */
export const prepare: Effect.Effect<void> = Effect.sync(() => void publishedDocument())

/** The open streams: used by the routes and by `drainStreams`. */
export const streams: Layer.Layer<Streams | Sockets, never, Database | Feed> = Streams.layer.pipe(
  Layer.provide(Watches.layer),
  Layer.provideMerge(Sockets.layer)
)

const idTokens = Layer.unwrap(Effect.map(SignInSettings, ({ issuer }) => IdTokens.layer(issuer)))

/**
 * The control API on a router: every route with and without `/v1`, `GET /openapi.json`, the JSON Schema of files with workflows, a page
 * to try the API at `GET /docs`, the dashboard at `GET /dashboard/` (to which `GET /` redirects browsers), the manual at `GET
 * /docs/guides/`, the pages of links for decisions, and the answers for unknown routes.
 */
export const layer: Layer.Layer<never, never, HttpRouter.HttpRouter | Needed> = Layer.mergeAll(
  HttpApiBuilder.layer(Api),
  PublishedDocument.layer,
  WorkflowSchema.layer,
  DocsPage.layer,
  DecisionPage.layer,
  DashboardPage.layer,
  ProviderSignIn.layer,
  GuidePages.layer,
  Layer.provide(UnmatchedRoutes.layer, CallTelemetry.layer)
).pipe(
  Layer.provide([
    ChannelAlertHandlers.layer,
    SourceHandlers.layer,
    ChannelHandlers.layer,
    DestinationHandlers.layer,
    ConnectionHandlers.layer,
    TransformationHandlers.layer,
    WorkflowHandlers.layer,
    WorkflowRunHandlers.layer,
    WorkflowAggregateHandlers.layer,
    WorkflowTemplateHandlers.layer,
    WorkflowTestHandlers.layer,
    WorkflowDecisionHandlers.layer,
    WorkflowChangeHandlers.layer,
    WorkflowValueHandlers.layer,
    FilterHandlers.layer,
    ActionHandlers.layer,
    SourceProviderHandlers.layer,
    SourceTypeHandlers.layer,
    ProviderAccountHandlers.layer,
    RequestHandlers.layer,
    EventHandlers.layer,
    IgnoredEventHandlers.layer,
    AttemptHandlers.layer,
    AuthHandlers.layer,
    TeamHandlers.layer,
    DataDeletionHandlers.layer,
    ShareHandlers.layer,
    PublicBinHandlers.layer,
    IssueHandlers.layer,
    MetricsHandlers.layer,
    FixtureHandlers.layer,
    FormatterHandlers.layer,
    ProjectKeyHandlers.layer,
    ProjectSecretHandlers.layer,
    StreamHandlers.layer
  ]),
  Layer.provide(Authorization.layer),
  Layer.provide([Credentials.layer, KeyAudit.layer, KeyLimits.layer, idTokens]),
  Layer.provide(Layer.provideMerge(ProviderAccounts.layer, ProviderCalls.layer))
)

/** Ends the streams before the server waits for its connections to end: its layer is built after the server's. */
export const drainStreams: Layer.Layer<never, never, Sockets> = Sockets.layerDraining
