import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from "@tanstack/react-router"
import { folder } from "./gateway.ts"
import { Attempt, Attempts } from "./pages/Attempts.tsx"
import { BulkOperation, BulkOperations } from "./pages/BulkOperations.tsx"
import { Event, Events } from "./pages/Events.tsx"
import { Overview } from "./pages/Overview.tsx"
import { Request, Requests } from "./pages/Requests.tsx"
import { Destination } from "./pages/resources/Destination.tsx"
import { Connections, Destinations, Sources } from "./pages/resources/Lists.tsx"
import { Source } from "./pages/resources/Source.tsx"
import { Transformations } from "./pages/transformations/Transformations.tsx"
import { Runs } from "./pages/workflows/Runs.tsx"
import { Workflows } from "./pages/workflows/Workflows.tsx"
import { searchOf } from "./parts/Filters.tsx"
import { Failure } from "./parts/States.tsx"
import { Shell } from "./Shell.tsx"

const root = createRootRoute({
  component: Shell,
  validateSearch: searchOf,
  errorComponent: ({ error, reset }) => <Failure error={error} retry={reset} />,
  notFoundComponent: () => (
    <p>
      There is no such page. Go to the <Link to="/">overview</Link>.
    </p>
  )
})

/** Pages that few visits need are loaded when they are opened. */
const editor = lazyRouteComponent(
  () => import("./pages/transformations/TransformationEditor.tsx"),
  "TransformationEditor"
)

const pages = [
  ["/", Overview],
  ["/map", lazyRouteComponent(() => import("./pages/map/FlowMap.tsx"), "FlowMap")],
  ["/requests", Requests],
  ["/requests/$id", Request],
  ["/events", Events],
  ["/events/$id", Event],
  ["/attempts", Attempts],
  ["/attempts/$id", Attempt],
  ["/runs", Runs],
  ["/bulk-operations", BulkOperations],
  ["/bulk-operations/$id", BulkOperation],
  ["/bulk-operations/$of/$id", BulkOperation],
  ["/sources/new", lazyRouteComponent(() => import("./pages/New.tsx"), "NewSource")],
  ["/destinations/new", lazyRouteComponent(() => import("./pages/New.tsx"), "NewDestination")],
  ["/connections/new", lazyRouteComponent(() => import("./pages/New.tsx"), "NewConnection")],
  ["/sources", Sources],
  ["/sources/$id", Source],
  ["/destinations", Destinations],
  ["/destinations/$id", Destination],
  ["/connections", Connections],
  ["/connections/$id", lazyRouteComponent(() => import("./pages/resources/Connection.tsx"), "Connection")],
  ["/transformations", Transformations],
  ["/transformations/new", editor],
  ["/transformations/$id", editor],
  ["/workflows", Workflows],
  ["/workflows/new", lazyRouteComponent(() => import("./pages/NewWorkflow.tsx"), "NewWorkflow")],
  ["/workflows/$id", lazyRouteComponent(() => import("./pages/workflows/Workflow.tsx"), "Workflow")],
  ["/workflows/$id/runs/$runId", lazyRouteComponent(() => import("./pages/workflows/Run.tsx"), "Run")],
  ["/workflows/$id/edit", lazyRouteComponent(() => import("./pages/workflows/editor/Editor.tsx"), "WorkflowEditor")],
  ["/workflows/$id/versions", lazyRouteComponent(() => import("./pages/workflows/Versions.tsx"), "Versions")],
  ["/workflows/$id/triggers", lazyRouteComponent(() => import("./pages/triggers/Triggers.tsx"), "Triggers")],
  ["/filters", lazyRouteComponent(() => import("./pages/StoredFilters.tsx"), "StoredFilters")],
  ["/filters/new", lazyRouteComponent(() => import("./pages/StoredFilters.tsx"), "NewStoredFilter")],
  ["/filters/$id", lazyRouteComponent(() => import("./pages/StoredFilters.tsx"), "StoredFilter")],
  ["/fixtures", lazyRouteComponent(() => import("./pages/Fixtures.tsx"), "Fixtures")],
  ["/fixtures/$id", lazyRouteComponent(() => import("./pages/Fixtures.tsx"), "Fixture")],
  ["/accounts", lazyRouteComponent(() => import("./pages/Accounts.tsx"), "Accounts")],
  ["/accounts/new", lazyRouteComponent(() => import("./pages/Accounts.tsx"), "NewAccount")],
  ["/accounts/$id", lazyRouteComponent(() => import("./pages/Accounts.tsx"), "Account")],
  ["/channels", lazyRouteComponent(() => import("./pages/Channels.tsx"), "Channels")],
  ["/channels/$id", lazyRouteComponent(() => import("./pages/Channels.tsx"), "Channel")],
  ["/alerts", lazyRouteComponent(() => import("./pages/Alerts.tsx"), "Alerts")],
  ["/bins", lazyRouteComponent(() => import("./pages/Bins.tsx"), "Bins")],
  ["/bins/$id", lazyRouteComponent(() => import("./pages/Bins.tsx"), "Bin")],
  ["/shares", lazyRouteComponent(() => import("./pages/Shares.tsx"), "Shares")],
  ["/team", lazyRouteComponent(() => import("./pages/Team.tsx"), "Team")],
  ["/team/secrets", lazyRouteComponent(() => import("./pages/ProjectSecrets.tsx"), "ProjectSecrets")],
  ["/team/delete", lazyRouteComponent(() => import("./pages/TeamDeletion.tsx"), "DeleteTeam")],
  ["/team-deletions/$id", lazyRouteComponent(() => import("./pages/TeamDeletion.tsx"), "TeamDeletion")],
  ["/team/keys/$id", lazyRouteComponent(() => import("./pages/Keys.tsx"), "Key")]
] as const

const routes = pages.map(([path, component]) => createRoute({ getParentRoute: () => root, path, component }))

/** Texts of a query stay texts: `?status=1` is no number. */
export const router = createRouter({
  routeTree: root.addChildren(routes),
  basepath: folder.pathname,
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const text = new URLSearchParams(search as Record<string, string>).toString()
    return text === "" ? "" : `?${text}`
  }
})
