import { actions } from "./Actions.ts"
import { channelAlerts } from "./ChannelAlerts.ts"
import { channels } from "./Channels.ts"
import { connections } from "./Connections.ts"
import { dataDeletions } from "./DataDeletions.ts"
import { destinations } from "./Destinations.ts"
import type { Section } from "./Facts.ts"
import { filters } from "./Filters.ts"
import { formatter } from "./Formatter.ts"
import { metrics } from "./Metrics.ts"
import { conventions, projectKeys, projectSecrets, sessions, teams } from "./People.ts"
import { bins, ingressUrls, shares, streams } from "./Public.ts"
import { providerAccounts } from "./ProviderAccounts.ts"
import { issues } from "./Issues.ts"
import { attempts, events, fixtures, ignoredEvents, requests } from "./Received.ts"
import { sources } from "./Sources.ts"
import { transformations } from "./Transformations.ts"
import { workflowChanges } from "./WorkflowChanges.ts"
import { workflows } from "./Workflows.ts"
import { workflowTests } from "./WorkflowTests.ts"
import { workflowTriggers } from "./WorkflowTriggers.ts"

/** In the order of the page. */
export const sections: ReadonlyArray<Section> = [
  conventions,
  sessions,
  teams,
  projectSecrets,
  projectKeys,
  sources,
  channelAlerts,
  channels,
  ingressUrls,
  destinations,
  connections,
  transformations,
  filters,
  requests,
  events,
  ignoredEvents,
  attempts,
  dataDeletions,
  issues,
  fixtures,
  shares,
  bins,
  streams,
  metrics,
  workflows,
  actions,
  providerAccounts,
  workflowTests,
  workflowTriggers,
  workflowChanges,
  formatter
]
