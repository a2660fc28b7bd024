import { actions } from "./Actions.ts"
import { connections } from "./Connections.ts"
import { destinations } from "./Destinations.ts"
import type { Section } from "./Facts.ts"
import { filters } from "./Filters.ts"
import { formatter } from "./Formatter.ts"
import { metrics } from "./Metrics.ts"
import { absent } from "./NotBuilt.ts"
import { conventions, projectKeys, projectSecrets, sessions, teams } from "./People.ts"
import { bins, ingressUrls, shares, streams } from "./Public.ts"
import { providerAccounts } from "./ProviderAccounts.ts"
import { attempts, events, fixtures, ignoredEvents, requests } from "./Received.ts"
import { sources } from "./Sources.ts"
import { transformations } from "./Transformations.ts"
import { workflows } from "./Workflows.ts"
import { workflowTrials } from "./WorkflowTrials.ts"

/** In the order of the page. */
export const sections: ReadonlyArray<Section> = [
  conventions,
  sessions,
  teams,
  projectSecrets,
  projectKeys,
  sources,
  ingressUrls,
  destinations,
  connections,
  transformations,
  filters,
  requests,
  events,
  ignoredEvents,
  attempts,
  fixtures,
  shares,
  bins,
  streams,
  metrics,
  workflows,
  actions,
  providerAccounts,
  workflowTrials,
  formatter,
  absent
]
