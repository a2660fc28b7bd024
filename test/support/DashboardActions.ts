import { page, table } from "../published/Markdown.ts"
import { type ApiDocument, operationOf } from "./ApiDocument.ts"

/*
 * The actions of the dashboard's pages: buttons that change something at the gateway. The walk of `Roles.test.ts` finds those that a page
 * offers, and each suite is held to those that it carries out.
 */

/** The actions by the suite of `test/dashboard` that carries them out. One that several suites carry out is named once. */
export const actions = {
  Actions: [
    "/: Acknowledge: POST /sources/channel-alerts/{id}/acknowledge",
    "/: Dismiss: POST /issues/{id}/dismiss",
    "/bulk-operations/$id: Retry N events: POST /events/bulk_operations/{id}/run",
    "/bulk-operations/$id: Stop: POST /events/bulk_operations/{id}/cancel",
    "/bulk-operations/$of/$id: Cancel N events: POST /events/bulk_operations/{id}/run",
    "/bulk-operations/$of/$id: Retry N run: POST /workflow_runs/bulk_operations/{id}/run",
    "/bulk-operations/$of/$id: Stop: POST /workflow_runs/bulk_operations/{id}/cancel",
    "/channels/$id: Use polling: PATCH /sources/{id}/delivery",
    "/connections/$id: Delete: DELETE /connections/{id}",
    "/connections/$id: Disable: PUT /connections/{id}/disable",
    "/connections/$id: Save: PATCH /connections/{id}",
    "/destinations/$id: Acknowledge: POST /issues/{id}/acknowledge",
    "/destinations/$id: Disable: PUT /destinations/{id}/disable",
    "/destinations/$id: Enable: PUT /destinations/{id}/enable",
    "/events/$id: Cancel: POST /events/bulk_operations",
    "/events: Cancel all of them…: POST /events/bulk_operations",
    "/requests/$id: Replay: POST /requests/{id}/retry",
    "/requests/$id: Send it: POST /requests/{id}/retry",
    "/runs: Retry all of them…: POST /workflow_runs/bulk_operations",
    "/sources/$id: Delete: DELETE /sources/{id}",
    "/sources/$id: Save: PATCH /sources/{id}",
    "/team/keys/$id: Enable: PATCH /project-api-keys/{id}",
    "/team/keys/$id: Revoke: DELETE /project-api-keys/{id}",
    "/team/keys/$id: Save: PATCH /project-api-keys/{id}",
    "/team: Delete: POST /data-deletions/{id}/run",
    "/team: Plan the deletion: POST /data-deletions",
    "/team: Stop: POST /data-deletions/{id}/cancel",
    "/transformations/$id: Delete: DELETE /transformations/{id}",
    "/transformations/$id: Run it: POST /transformations/run",
    "/transformations/$id: Run it: PUT /transformations/validate",
    "/transformations/$id: Save: PATCH /transformations/{id}",
    "/workflows/$id/runs/$runId: Cancel: POST /workflows/{id}/runs/{runId}/cancel",
    "/workflows/$id/runs/$runId: Reject: POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision",
    "/workflows/$id/runs/$runId: Retry from this step: POST /workflows/{id}/runs/{runId}/retry",
    "/workflows/$id/runs/$runId: Run again: POST /workflows/{id}/runs/{runId}/rerun",
    "/workflows/$id/versions: Roll back to it: POST /workflows/{id}/versions/{version}/restore",
    "/workflows/$id: Begin the run: POST /workflows/{id}/runs",
    "/workflows/$id: Delete: DELETE /workflows/{id}",
    "/workflows/$id: Discard: DELETE /workflows/{id}/draft",
    "/workflows/$id: Make the copy: POST /workflows/{id}/clone",
    "/workflows/$id: Publish: POST /workflows/{id}/draft/publish",
    "/workflows: Activate: PATCH /workflows/{id}",
    "/workflows: Delete: DELETE /workflows/{id}",
    "/workflows: Pause: PATCH /workflows/{id}"
  ],
  Forms: [
    "/alerts: Save: PATCH /sources/channel-settings",
    "/team/delete: Delete the team for ever: POST /team/deletion",
    "/team/secrets: Replace the API key: POST /project-secrets/rotate",
    "/team/secrets: Replace the signing secret: POST /project-secrets/rotate",
    "/team: Save the retention: PATCH /team",
    "/workflows/$id/triggers: Save the triggers: PATCH /workflows/{id}"
  ],
  Operate: [
    "/accounts/$id: Connect again: POST /provider-accounts/credentials/connect",
    "/accounts/$id: Revoke: DELETE /provider-accounts/{id}",
    "/accounts/new: Ask for the consent: POST /provider-accounts/oauth/start",
    "/accounts/new: Connect: POST /provider-accounts/credentials/connect",
    "/alerts: Acknowledge: POST /sources/channel-alerts/{id}/acknowledge",
    "/alerts: Remove the chat: PATCH /sources/channel-settings",
    "/alerts: Set the chat: PATCH /sources/channel-settings",
    "/bins/$id: Keep it: POST /public-bins/{id}/claim",
    "/bins: New bin: POST /public-bins",
    "/bulk-operations/$of/$id: Cancel N runs: POST /workflow_runs/bulk_operations/{id}/run",
    "/channels/$id: Poll now: POST /sources/{id}/run",
    "/channels/$id: Try again: POST /sources/{id}/channel-retry",
    "/filters/$id: Delete: DELETE /filters/{id}",
    "/filters/$id: Save: PATCH /filters/{id}",
    "/filters/$id: Try it: POST /filters/test",
    "/filters/new: Create the filter: POST /filters",
    "/fixtures/$id: Delete: DELETE /request-fixtures/{id}",
    "/fixtures/$id: Save: PATCH /request-fixtures/{id}",
    "/fixtures/$id: Send: POST /request-fixtures/{id}/replay",
    "/requests/$id: Keep it: POST /request-fixtures",
    "/requests/$id: Make the link: POST /requests/{id}/share",
    "/runs: Cancel all of them…: POST /workflow_runs/bulk_operations",
    "/shares: Revoke: DELETE /requests/{id}/share/{share}",
    "/team/keys/$id: Disable: PATCH /project-api-keys/{id}",
    "/team: Add the member: POST /team/members",
    "/team: Make a member: PATCH /team/members/{id}",
    "/team: Make an owner: PATCH /team/members/{id}",
    "/team: Make the key: POST /project-api-keys",
    "/team: Remove: DELETE /team/members/{id}"
  ],
  Pages: [
    "/: Acknowledge: POST /issues/{id}/acknowledge",
    "/bulk-operations/$of/$id: Retry N events: POST /events/bulk_operations/{id}/run",
    "/connections/$id: Pause: PUT /connections/{id}/pause",
    "/connections/$id: Resume: PUT /connections/{id}/unpause",
    "/connections/$id: Save the rules: PATCH /connections/{id}",
    "/connections/$id: Try them on the last N requests: POST /filters/test",
    "/connections/new: Create the connection: POST /connections",
    "/destinations/$id: Delete: DELETE /destinations/{id}",
    "/destinations/$id: Dismiss: POST /issues/{id}/dismiss",
    "/destinations/$id: Save: PATCH /destinations/{id}",
    "/destinations/new: Create the destination: POST /destinations",
    "/events/$id: Retry: POST /events/{id}/retry",
    "/events: Retry all of them…: POST /events/bulk_operations",
    "/sources/$id: Disable: PUT /sources/{id}/disable",
    "/sources/$id: Enable: PUT /sources/{id}/enable",
    "/sources/new: Create the source: POST /sources",
    "/transformations/new: Run it: POST /transformations/run",
    "/transformations/new: Run it: PUT /transformations/validate",
    "/transformations/new: Save: POST /transformations",
    "/workflows/$id/edit: Save as draft: PUT /workflows/{id}/draft",
    "/workflows/$id/edit: Save mine over it: PATCH /workflows/{id}",
    "/workflows/$id/edit: Save: PATCH /workflows/{id}",
    "/workflows/$id/edit: Test: POST /workflows/test",
    "/workflows/$id/runs/$runId: Approve: POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision",
    "/workflows/$id: Activate: PATCH /workflows/{id}",
    "/workflows/$id: Pause: PATCH /workflows/{id}",
    "/workflows/new: Create the workflow: POST /workflow-templates/{key}/instantiate"
  ],
  Reasons: ["/requests/$id: Which condition?: POST /filters/test"],
  ResourceForms: [
    "/destinations/$id: Try it: POST /destinations/test",
    "/destinations/new: Try it: POST /destinations/test"
  ],
  RuleTrials: ["/connections/$id: Try them on the last N requests: POST /sources/{id}/deduplication-test"],
  Sources: ["/sources/$id: Send a test request: POST /sources/{id}/test-request"],
  Tasks: [
    "/connections/new: Create the connection: POST /destinations",
    "/connections/new: Create the connection: POST /sources",
    "/team: Revoke: DELETE /project-api-keys/{id}",
    "/workflows/new: Create the workflow: POST /workflows"
  ]
} as const satisfies Readonly<Record<string, ReadonlyArray<string>>>

const suites = Object.keys(actions) as ReadonlyArray<keyof typeof actions>
const all = new Set<string>(suites.flatMap((suite) => actions[suite]))

/** Actions of the table that the suite has not carried out, and actions that it has carried out but that are not in the table. */
export const differences = (suite: keyof typeof actions, carried: ReadonlySet<string>) => ({
  missing: actions[suite].filter((action) => !carried.has(action)),
  unknown: [...carried].filter((action) => !all.has(action))
})

/** Actions that pages offer but that are not in the table. */
export const unknownOf = (offered: ReadonlyArray<string>): ReadonlyArray<string> =>
  offered.filter((action) => !all.has(action))

/** The table as a page of the documentation, in the order of the router. */
export const tableOf = (routes: ReadonlyArray<string>): Promise<string> => {
  const rows = suites.flatMap((suite) =>
    actions[suite].map((action) => {
      const [route = "", label = "", call = ""] = action.split(": ")
      return { route, label, call, suite }
    })
  )
  const lines = routes.flatMap((route) =>
    rows
      .filter((row) => row.route === route)
      .toSorted((a, b) => (a.label < b.label ? -1 : 1))
      .map(({ call, label, suite }) => [`\`${route}\``, label, `\`${call}\``, suite])
  )
  return page([
    "# Every action of the dashboard",
    `The buttons of [the dashboard](../dashboard.md) that change something at the gateway, with the calls that they make. The last column
names the suite of \`test/dashboard\` that presses the button on a running gateway, and looks at what has become of it. \`N\` is any
number. \`npm test -- test/dashboard/Roles.test.ts -u\` writes this page.`,
    table(["Page", "Button", "Call", "Tried by"], lines)
  ])
}

/** Runs in a page: the label of a button, without numbers, because these differ from visit to visit. */
export const labelOf = `((button) => (button.getAttribute("aria-label") ?? button.innerText).replaceAll(/\\d[\\d,.]*/g, "N"))`

/** One action as the table has it: the route of its page, its label, and a call that it makes. */
export const actionOf = (
  document: ApiDocument,
  routes: ReadonlyArray<string>,
  { call, label, path }: { readonly call: string; readonly label: string; readonly path: string }
): string => {
  // If two routes match, the one without parameters is meant.
  const route = routes
    .toSorted((a, b) => a.split("$").length - b.split("$").length)
    .find((one) => new RegExp(`^${one.replaceAll(/\$\w+/g, "[^/]+")}$`).test(path))
  return `${route ?? path}: ${label}: ${operationOf(document, call)}`
}

/** The editor of workflows makes this call by itself, not for a button. */
const unasked = "/v1/workflows/validate"

/**
 * Runs in a page before its scripts: tells `carriedOut` which button of which page has made a call that the gateway accepted. A button
 * that asks before it acts says something else at its second click: the first label counts.
 */
export const watching = `(() => {
  const { fetch } = globalThis
  const label = ${labelOf}
  let clicked = null
  let shown = null
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("main button")
    if (button === null) return
    if (button !== clicked) shown = { label: label(button), path: location.pathname }
    clicked = button
  }, true)
  globalThis.fetch = async (input, init) => {
    const by = shown
    const request = new Request(input, init)
    const { pathname } = new URL(request.url)
    const isChange = request.method !== "GET" && pathname.startsWith("/v1/") && pathname !== ${JSON.stringify(unasked)}
    if (isChange) clicked = null
    const response = await fetch(request)
    if (isChange && response.ok && by !== null) carriedOut({ ...by, call: request.method + " " + pathname })
    return response
  }
})()`
