import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { expect } from "vitest"
import type { FakeProviderServer } from "./FakeProviderServer.ts"
import type { Gateway } from "./Gateway.ts"

/*
 * A team with one of everything that a page of the dashboard shows, in each state in which the page offers something else.
 */

const root = resolve(import.meta.dirname, "../..")

/** The path at which a page of the router has content. */
export interface Place {
  readonly route: string
  readonly path: string
}

/** The routes of the dashboard's router. */
export const routesOf = async (): Promise<ReadonlyArray<string>> => {
  const router = await readFile(resolve(root, "apps/dashboard/src/router.tsx"), "utf8")
  return [...router.matchAll(/^ {2}\["(\/[^"]*)",/gm)].map(([, route]) => route!)
}

/** A source whose channel the provider refuses, which opens an alert. */
const refused = async (gateway: Gateway, forge: FakeProviderServer) => {
  const account = await gateway.api("POST", "/provider-accounts/credentials/connect", {
    provider_key: "git_host",
    name: gateway.name("account"),
    base_url: forge.address,
    credentials: { token: "a-token" }
  })
  forge.provider.refuse(403, { path: /hooks/, times: 10_000 })
  const { id } = await gateway.api("POST", "/sources", {
    name: gateway.name("pushes"),
    type: "PROVIDER",
    config: {
      provider: {
        provider_key: "git_host",
        definition_key: "push",
        provider_account_id: account.id,
        inputs: { repository: "acme/shop" }
      }
    }
  })
  return { account: account.id, channel: id }
}

/** A workflow with a run that waits for an approval, and one with a run that has failed at its step. */
const begun = async (gateway: Gateway, source: string) => {
  const { id: resource_id } = await gateway.api("POST", "/transformations", {
    name: gateway.name("fails"),
    code: 'addHandler("transform", () => { throw new Error("no") })'
  })
  const begin = async (step: object) => {
    const { id: workflow } = await gateway.api("POST", "/workflows", {
      name: gateway.name("workflow"),
      source_id: source,
      steps: [{ id: "step_only", ...step }],
      edges: [{ source_type: "trigger", target_step_id: "step_only" }]
    })
    return { workflow, run: (await gateway.api("POST", `/workflows/${workflow}/runs`, {})).id }
  }
  const asking = await begin({ kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } })
  const failing = await begin({ kind: "transformation", resource_id })
  const read = ({ run, workflow }: typeof asking) => gateway.api("GET", `/workflows/${workflow}/runs/${run}`)
  const failedAt = await gateway.eventually("one run waits, and the other one has failed", async () => {
    const [waits, failed] = [await read(asking), await read(failing)]
    return waits.steps[0]?.wait?.kind === "signal" && failed.status === "failed" ? failed.finished_at : null
  })
  return { asking, failing: { ...failing, failedAt } }
}

/** A workflow without runs that has two versions, and a draft of a third one. */
const versioned = async (gateway: Gateway, source: string): Promise<string> => {
  const over = (id: string, least: number) => ({
    id,
    kind: "filter",
    config: { conditions: { body: { total: { $gt: least } } } }
  })
  const begin = { source_type: "trigger", target_step_id: "step_large" }
  const next = { source_step_id: "step_large", source_port: "matched", target_step_id: "step_larger" }
  const { id } = await gateway.api("POST", "/workflows", {
    name: gateway.name("versions"),
    source_id: source,
    steps: [over("step_large", 10)],
    edges: [begin]
  })
  const steps = [over("step_large", 5), over("step_larger", 6)]
  await gateway.api("PATCH", `/workflows/${id}`, { version: 1, steps, edges: [begin, next] })
  await gateway.api("PUT", `/workflows/${id}/draft`, { steps: [over("step_large", 1)], edges: [begin] })
  return id
}

/** Fills a team. Returns what it has made, and where each page of the router shows something. */
export const filled = async (gateway: Gateway, owner: string, url: string, forge: FakeProviderServer) => {
  const make = async (path: string, body: object, key?: string): Promise<string> => {
    const { body: made, status } = await gateway.call("POST", path, body, key)
    expect([path, Math.floor(status / 100), made.message]).toEqual([path, 2, undefined])
    return (made.data ?? made).id as string
  }
  const source = await gateway.api("POST", "/sources", { name: gateway.name("shown") })
  const destination = await gateway.destination({ url })
  const dead = await gateway.destination({ url: "http://127.0.0.1:9" })
  const { id: connection } = await gateway.connection(source, destination)
  const { id: paused } = await gateway.connection(source, dead)
  const answer = await fetch(source.url, { method: "POST", body: '{"id":1}' })
  const { request_id: request } = (await answer.json()) as { readonly request_id: string }
  await gateway.traced(request, 2)
  const { models } = await gateway.api("GET", `/events?request_id=${request}`)
  const attempt = await gateway.eventually("an attempt was made", async () => {
    const { models: attempts } = await gateway.api("GET", `/attempts?request_id=${request}`)
    return attempts[0]?.id ?? null
  })
  const { account, channel } = await refused(gateway, forge)
  const { asking, failing } = await begun(gateway, source.id)
  const changed = await versioned(gateway, source.id)
  const bulk = (of: string) => make(`/${of}/bulk_operations`, { all: true, confirm: false })
  const [events, runs] = [await bulk("events"), await bulk("workflow_runs")]
  const filter = await make("/filters", { name: gateway.name("f"), conditions: { body: { a: 1 } } }, owner)
  const key = (more: object = {}) =>
    make("/project-api-keys", { name: gateway.name("key"), scopes: ["control:read"], ...more }, owner)
  const [active, disabled] = [await key(), await key()]
  await gateway.call("PATCH", `/project-api-keys/${disabled}`, { status: "disabled" }, owner)
  const transformation = await make("/transformations", {
    name: gateway.name("t"),
    code: "addHandler('transform', (r) => r)"
  })
  const fixture = await make("/request-fixtures", { request_id: request, name: gateway.name("fixture") })
  await make(`/requests/${request}/share`, { title: gateway.name("share") })
  const deletion = await make("/data-deletions", { text: "nobody@example.com" })
  const off = await gateway.source()
  await gateway.call("PUT", `/sources/${off.id}/disable`)
  // What it refuses is stored as rejected.
  await fetch(off.url, { method: "POST" })
  await gateway.call("PUT", `/destinations/${dead.id}/disable`)
  await gateway.call("PUT", `/connections/${paused}/pause`)
  const seen = async () => {
    const [ofEvents, ofRuns, { stage }, issues, alerts] = await Promise.all([
      gateway.api("GET", `/events/bulk_operations/${events}`),
      gateway.api("GET", `/workflow_runs/bulk_operations/${runs}`),
      gateway.api("GET", `/data-deletions/${deletion}`),
      gateway.api("GET", `/issues?destination_id=${dead.id}`),
      gateway.api("GET", "/sources/channel-alerts")
    ])
    return {
      areCounted: ofEvents.planned_at !== null && ofRuns.planned_at !== null,
      stage,
      issues: issues.models.length,
      alerts: alerts.models.length
    }
  }
  await gateway.eventually(
    "the plans are made, and an issue and an alert are open",
    seen,
    ({ alerts: open, areCounted, issues, stage }) => areCounted && stage === "planned" && issues > 0 && open > 0
  )
  /** For a route with the id of something, or with more than one state: the paths. */
  const paths: Readonly<Record<string, ReadonlyArray<string>>> = {
    "/requests/$id": [`requests/${request}`],
    "/attempts/$id": [`attempts/${attempt}`],
    "/events/$id": [`events/${models[0]!.id}`],
    "/runs": ["runs", "runs?status=running"],
    "/bulk-operations/$id": [`bulk-operations/${events}`],
    "/bulk-operations/$of/$id": [`bulk-operations/workflow_runs/${runs}`],
    "/sources/$id": [`sources/${source.id}`, `sources/${off.id}`],
    "/destinations/$id": [`destinations/${destination.id}`, `destinations/${dead.id}`],
    "/connections/$id": [`connections/${connection}`, `connections/${paused}`],
    "/transformations/$id": [`transformations/${transformation}`],
    "/workflows/$id": [
      `workflows/${asking.workflow}`,
      `workflows/${changed}`,
      `workflows/${asking.workflow}?form=copy`
    ],
    "/workflows/$id/versions": [`workflows/${changed}/versions`],
    "/workflows/$id/runs/$runId": [
      `workflows/${asking.workflow}/runs/${asking.run}`,
      `workflows/${failing.workflow}/runs/${failing.run}`
    ],
    "/workflows/$id/edit": [`workflows/${asking.workflow}/edit`],
    "/workflows/$id/triggers": [`workflows/${asking.workflow}/triggers`],
    "/filters/$id": [`filters/${filter}`],
    "/fixtures/$id": [`fixtures/${fixture}`],
    "/accounts/$id": [`accounts/${account}`],
    "/channels/$id": [`channels/${channel}`],
    "/team/keys/$id": [`team/keys/${active}`, `team/keys/${disabled}`],
    // Only the browser that made a bin shows it, and a deleted team has no pages: here they are not found.
    "/bins/$id": ["bins/src_none"],
    "/team-deletions/$id": ["team-deletions/tm_none"]
  }
  const places = (await routesOf()).flatMap((route): ReadonlyArray<Place> => {
    if (route.includes("$") && paths[route] === undefined) throw new Error(`this world does not say where ${route} is`)
    return (paths[route] ?? [route.slice(1)]).map((path) => ({ route, path }))
  })
  const made = {
    off: off.id,
    destination: destination.id,
    dead: dead.id,
    connection,
    request,
    events,
    runs,
    asking,
    failing,
    changed,
    channel,
    transformation,
    disabled
  }
  return { places, made }
}
