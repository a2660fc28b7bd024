import type { BulkOf } from "@tidegate/model/BulkOperation"
import { randomBytes } from "node:crypto"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { AnyResource } from "@tidegate/resources/Resource"
import { resources } from "@tidegate/resources/Resources"
import { workflow } from "@tidegate/resources/Workflow"
import { draftExample } from "@tidegate/resources/WorkflowDraftInput"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { binsTeam } from "@tidegate/storage/teams/Teams"
import type { Body, Gateway } from "../../support/Gateway.ts"
import { it as gatewayIt } from "../../support/it.ts"
import { request } from "../../support/RawHttp.ts"
import { Document, type Operation } from "./Document.ts"

/** What a call of any operation of the document needs: one of everything that its example names, and a credential. */

/** What the examples' ids stand for in this gateway, by their prefix. */
export type Present = Record<string, string>

/** The key of the credential that has to make the call, if no other one may. No example's id has this prefix. */
export const callerKey = "caller"

/** A team of its own, with the session of its owner: being deleted, or not yet. */
const doomedTeam = async (gateway: Gateway, isDeleted: boolean): Promise<Present> => {
  const tm = newId(prefixes.team, Date.now())
  await gateway.sql("insert into teams (id, name) values ($1, 'Payments')", [tm])
  const session = await gateway.session("owner", tm)
  if (isDeleted) {
    await gateway.sql(
      `insert into team_deletions (id, requested_by, requested_at, stage, finished_at)
        select team_id, user_id, now(), 'done', now() from sessions where token_hash = $1`,
      [hashToken(session)]
    )
  }
  return { tm, [callerKey]: session }
}

/** A planned deletion that would delete nothing, because it ends before the first request; or none that is under way. */
const plannedDeletion = async (gateway: Gateway, isThere: boolean): Promise<Present> => {
  await gateway.sql(
    "update data_deletions set stage = 'cancelled', text = null, finished_at = now() where team_id = $1 and finished_at is null",
    [gateway.team]
  )
  if (!isThere) return {}
  const del = newId(prefixes.dataDeletion, Date.now())
  await gateway.sql(
    `insert into data_deletions (id, team_id, filter, until, stage, requested_at, pass_at)
      values ($1, $2, '{"to":"2000-01-01T00:00:00.000Z"}', '2000-01-01', 'planned', now(), now() + interval '1 day')`,
    [del, gateway.team]
  )
  return { del }
}

const idPattern = /\b([a-z]{2,3})_(?:[0-9a-z]{26}|[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{48})\b/g
export const fill = (value: unknown, ids: Present): Body =>
  JSON.parse(JSON.stringify(value).replaceAll(idPattern, (id, prefix: string) => ids[prefix] ?? id))

/** A workflow as its example writes it. */
const workflowOf = async (gateway: Gateway, ids: Present): Promise<string> => {
  const written = Object.assign({}, fill(workflow.example.body, ids), { name: gateway.name("workflow") })
  return (await gateway.api("POST", "/workflows", written)).id
}

/** A run whose step `approved` waits for a decision. */
const waitingRunOf = async (gateway: Gateway): Promise<Present> => {
  const { id } = await gateway.api("POST", "/workflows", {
    name: gateway.name("waiting"),
    source_id: null,
    triggers: {},
    steps: [{ id: "approved", kind: "wait", name: "Approved", config: { for: "approval", amount: 1, unit: "hours" } }]
  })
  const run = await gateway.api("POST", `/workflows/${id}/runs`, {})
  await gateway.eventually("the step waits", async () => {
    const { steps } = await gateway.api("GET", `/workflows/${id}/runs/${run.id}`)
    return steps[0]?.wait == null ? null : true
  })
  return { wfl: id, wfr: run.id }
}

/** A workflow whose step has failed, and its run, which is at its end. */
const failedRunOf = async (gateway: Gateway): Promise<Present> => {
  const source = await gateway.source()
  const step = {
    id: "to_crm",
    kind: "action",
    action: { provider_key: "formatter", action_key: "number.formula", version: "1.0.0" },
    invocation_inputs: { formula: "1 / 0" }
  }
  const workflow = await gateway.api("POST", "/workflows", {
    name: gateway.name("failing"),
    source_id: source.id,
    steps: [step],
    edges: [{ source_type: "trigger", target_step_id: step.id }]
  })
  await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })
  const run = await gateway.eventually("a run at its end", async () => {
    const { models } = await gateway.api("GET", `/workflows/${workflow.id}/runs`)
    return models[0]?.status === "failed" ? models[0] : null
  })
  return { wfl: workflow.id, wfr: run.id }
}

/** A source with instant delivery of a feed that nobody serves. */
const itemSourceOf = async (gateway: Gateway): Promise<string> => {
  const provider = {
    provider_key: "websub",
    definition_key: "entry.added",
    inputs: { url: "http://127.0.0.1:9/feed" }
  }
  const written = { name: gateway.name("items"), type: "PROVIDER" as const, config: { provider } }
  return (await gateway.api("POST", "/sources", written)).id
}

/** Those that are made in a way of their own. */
const own: ReadonlySet<string> = new Set(["sources", "destinations", "connections", "transformations", "workflows"])

/** The others are made as their examples write them. */
const plain = (resources as ReadonlyArray<AnyResource>).filter(({ plural }) => !own.has(plural))

/** A resource of each of these kinds as its example writes it, by its prefix. `ids`: what the examples name. */
const examplesOf = async (gateway: Gateway, kinds: ReadonlyArray<AnyResource>, ids: Present): Promise<Present> => {
  const made: Present = {}
  for (const resource of kinds) {
    const { example, name, plural, prefix } = resource
    const written = Object.assign({}, fill(example.body, ids), { name: gateway.name(name) })
    const answer = await gateway.call("POST", `/${plural}`, written, await gateway.writer(resource))
    made[prefix.slice(0, -1)] = answer.body.id
  }
  return made
}

/** Whose address makes them one of the installation's admins. */
export const siteAdmin = "root@example.com"

export const it = gatewayIt
  .extend("settings", { scope: "file" }, (): Readonly<Record<string, string>> => ({
    TIDEGATE_SITE_ADMINS: siteAdmin,
    // No call of an example leaves this machine.
    TIDEGATE_API_ORIGINS: "https://api.github.com=http://127.0.0.1:9"
  }))
  .extend("document", { scope: "file" }, ({ gateway }) => Document.of(gateway))
  /** One of everything that examples name. */
  .extend("present", { scope: "file" }, async ({ gateway }): Promise<Present> => {
    const source = await gateway.source({ allowed_http_methods: ["GET", "POST", "PUT", "PATCH", "DELETE"] })
    const destination = await gateway.destination({}, "MOCK_API")
    const transformation = await gateway.api("POST", "/transformations", {
      name: gateway.name("transformation"),
      code: "addHandler('transform', (request) => ({ ...request, body: { seen: true } }))"
    })
    const connection = await gateway.connection(source, destination, [
      { type: "transform", transformation_id: transformation.id }
    ])
    const sent = await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })
    const trace = await gateway.eventually("an attempt", async () => {
      const trace = await gateway.api("GET", `/requests/${JSON.parse(sent.body).request_id}/trace`)
      return trace.events[0]?.status === "SUCCESSFUL" ? trace : null
    })
    const linked = { src: source.id, des: destination.id, web: connection.id, trs: transformation.id }
    return {
      ...linked,
      req: trace.request.id,
      evt: trace.events[0]!.id,
      att: trace.attempts[0]!.id,
      fix: (await gateway.api("POST", "/request-fixtures", { request_id: trace.request.id, name: "a fixture" })).id,
      txe: trace.transformations[0]!.id,
      ...(await failedRunOf(gateway)),
      ...(await examplesOf(gateway, plain, linked))
    }
  })
  /** The same, but for a resource of its own where the operation changes one. */
  .extend("presentFor", ({ gateway, present }) => async ({ id, method, path }: Operation): Promise<Present> => {
    if (id === "deleteWorkflowTemplate") {
      const body = { workflow_id: present["wfl"]!, name: gateway.name("template") }
      return { ...present, wft: (await gateway.api("POST", "/workflow-templates", body)).key }
    }
    if (path.startsWith("/request-fixtures/")) {
      const body = { request_id: present["req"]!, name: "a fixture" }
      return { ...present, fix: (await gateway.api("POST", "/request-fixtures", body)).id }
    }
    if (id === "revokeShare" || id === "openShare") {
      const share = await gateway.api("POST", `/requests/${present["req"]!}/share`)
      return { ...present, shr: share.id, rsh: share.token }
    }
    if (path === "/team/deletion" || path === "/team-deletions/{id}") {
      return { ...present, ...(await doomedTeam(gateway, id === "getTeamDeletion")) }
    }
    if (path.startsWith("/team/members")) {
      // Known by the address of the example, so that nobody has to be expected.
      await gateway.sql(
        `insert into users (id, issuer, subject, email, email_verified, created_at, updated_at)
          values ('usr_grace', 'https://issuer.test', 'grace', 'grace@example.com', true, now(), now()) on conflict do nothing`
      )
      const id = newId(prefixes.user, Date.now())
      await gateway.sql(
        `with person as (
          insert into users (id, issuer, subject, created_at, updated_at) values ($1, '', $1, now(), now())
        ) insert into memberships values ('tm_demo', $1, 'member', now())`,
        [id]
      )
      return { ...present, usr: id }
    }
    if (path.startsWith("/project-api-keys/")) {
      // Another operation's calls may have made as many as there may be.
      await gateway.sql("update project_api_keys set status = 'revoked', revoked_at = now() where not legacy")
      const headers = { authorization: `Bearer ${await gateway.session("owner")}`, "content-type": "application/json" }
      const body = JSON.stringify({ name: "a key", scopes: ["control:read"] })
      const made = await fetch(`${gateway.origin}/project-api-keys`, { method: "POST", headers, body })
      return { ...present, pak: ((await made.json()) as Body).data.id }
    }
    if (path.startsWith("/data-deletions")) {
      return { ...present, ...(await plannedDeletion(gateway, path.includes("{id}"))) }
    }
    if (path.startsWith("/issues/{id}")) {
      const [{ id }] = await gateway.sql(
        `insert into issues (id, team_id, destination_id, error_code, status, count, event_ids, first_seen_at, last_seen_at, opened_at, expires_at)
          select $1, team_id, id, $1, 'open', 1, '{}', now(), now(), now(), now() + interval '1 day' from destinations where id = $2 returning id`,
        [newId(prefixes.issue, Date.now()), present["des"]]
      )
      return { ...present, iss: id }
    }
    if (path.startsWith("/sources/channel-alerts/{id}")) {
      const [{ id }] = await gateway.sql(
        `insert into channel_alerts (id, team_id, source_id, code, status, message, occurrences, first_seen_at, last_seen_at, expires_at)
          select $1, team_id, id, 'channel_stop_failed', 'active', '', 1, now(), now(), now() from sources where id = $2
          on conflict (source_id, code) where status = 'active' do update set acknowledged_at = null returning id`,
        [newId(prefixes.channelAlert, Date.now()), present["src"]]
      )
      return { ...present, cal: id }
    }
    if (path === "/provider-accounts/{id}") {
      const id = newId(prefixes.providerAccount, Date.now())
      await gateway.sql(
        `insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, created_at, updated_at)
          select $1, team_id, 'git_host', 'ci', 'api_key', 'http://127.0.0.1:9', now(), now() from sources where id = $2`,
        [id, present["src"]]
      )
      return { ...present, pac: id }
    }
    if (path.startsWith("/public-bins/")) {
      // Behind the API's back, which lets one address make few.
      const [id, token] = [newId(prefixes.source, Date.now()), `pbn_${randomBytes(24).toString("hex")}`]
      await gateway.sql(
        `with source as (
          insert into sources (id, team_id, name, type, config, created_at, updated_at)
          select $1, $2, $1, type, config, now(), now() from sources where id = $3 returning id
        ) insert into public_bins (source_id, team_id, token_hash, minute, expires_at, created_at)
          select id, $2, $4, now(), now() + interval '1 hour', now() from source`,
        [id, binsTeam, present["src"], hashToken(token)]
      )
      return { ...present, src: id, pbn: token }
    }
    if (path.includes("/bulk_operations/{id}"))
      return { ...present, bch: await gateway.heldOperation(path.split("/")[1] as BulkOf) }
    if (id === "cancelWorkflowRun" || id === "decideWorkflowStep")
      return { ...present, ...(await waitingRunOf(gateway)) }
    if (path.startsWith("/workflows/{id}/values")) {
      const { wfl } = await failedRunOf(gateway)
      await gateway.api("PUT", `/workflows/${wfl!}/values/orders`, { value: 1 })
      return { ...present, wfl: wfl! }
    }
    if (path.startsWith("/workflows/{id}/runs")) return { ...present, ...(await failedRunOf(gateway)) }
    if (method === "GET" && id !== "getWorkflowDraft") return present
    if ((id.startsWith("run") && id !== "runSource") || id.startsWith("send")) return present
    const kind = path.split("/")[1]
    if (/^\/sources\/\{id\}\/(?:channel-retry|delivery|run)$/.test(path) || id === "changeChannels") {
      return { ...present, src: await itemSourceOf(gateway) }
    }
    if (kind === "sources" && path.includes("{id}")) return { ...present, src: (await gateway.source()).id }
    if (id === "startDestinationConsent") {
      const client = { token_url: "https://id.example.com/token", client_id: "gateway", client_secret: "s3cret-of-it" }
      const auth = { ...client, authorization_url: "https://id.example.com/authorize" }
      const config = { url: "http://127.0.0.1:9/", auth_type: "OAUTH2_AUTHORIZATION_CODE", auth }
      return { ...present, des: (await gateway.destination(config)).id }
    }
    if (path.startsWith("/destinations/{id}/messages/")) {
      return { ...present, des: (await gateway.destination({}, "PULL")).id }
    }
    if (kind === "destinations" && path.includes("{id}")) {
      return { ...present, des: (await gateway.destination({ url: "http://127.0.0.1:9/" })).id }
    }
    if (kind === "connections" && path.includes("{id}")) {
      return { ...present, web: (await gateway.connection({ id: present["src"]! }, { id: present["des"]! })).id }
    }
    if (kind === "transformations" && path.includes("{id}")) {
      const made = await gateway.api("POST", "/transformations", { name: gateway.name("example"), code: "1" })
      return { ...present, trs: made.id }
    }
    if (kind === "workflows" && path.includes("/draft")) {
      const wfl = await workflowOf(gateway, present)
      if (id !== "putWorkflowDraft") await gateway.api("PUT", `/workflows/${wfl}/draft`, fill(draftExample, present))
      return { ...present, wfl }
    }
    if (kind === "workflows" && path.includes("{id}")) return { ...present, wfl: await workflowOf(gateway, present) }
    const kinds = plain.filter(({ plural }) => plural === kind && path.includes("{id}"))
    return { ...present, ...(await examplesOf(gateway, kinds, present)) }
  })
  /** The session of somebody new, who is what an operation asks for. */
  .extend("person", ({ gateway }) => async ({ security = [] }: Body): Promise<string> => {
    const token = await gateway.session("owner")
    if (security.some(({ session = [] }: Body) => session.includes("admin"))) {
      await gateway.sql("update users set email = $1 where id = (select user_id from sessions where token_hash = $2)", [
        siteAdmin,
        hashToken(token)
      ])
    }
    return token
  })
  /** A credential that an operation is said to take: the key, or the session of somebody new. */
  .extend("credential", ({ gateway, person }) => async (spec: Body): Promise<string> => {
    return spec.security.some((one: Body) => "bearer" in one) ? gateway.key : person(spec)
  })
  .extend(
    "send",
    ({ credential, document, gateway }) =>
      async ({ method, path, spec }: Operation, ids: Present, body: unknown) => {
        const url = spec.parameters
          .filter((parameter: Body) => parameter.in === "path")
          .reduce((url: string, { example, name }: Body) => url.replace(`{${name}}`, fill(example, ids)), path)
        const server = spec.servers?.[0].url ?? document.json.servers[0].url
        const query = exampleQuery(spec, ids)
        const answer = await fetch(
          `${gateway.origin}${server === "/" ? "" : server}${url}${query === "" ? "" : `?${query}`}`,
          {
            method,
            headers: {
              ...exampleHeaders(spec, ids),
              ...(spec.security.length > 0
                ? { authorization: `Bearer ${ids[callerKey] ?? (await credential(spec))}` }
                : {}),
              ...(body === undefined ? {} : { "content-type": "application/json" })
            },
            ...(body === undefined ? {} : { body: JSON.stringify(body) })
          }
        )
        const text = await answer.text()
        return { status: answer.status, text }
      }
  )

/** The headers that an example is stated of. */
export const exampleHeaders = (spec: Body, ids: Present): Record<string, string> =>
  Object.fromEntries(
    spec.parameters
      .filter(({ example, in: place }: Body) => place === "header" && example !== undefined)
      .map(({ example, name }: Body) => [name, fill(example, ids)])
  )

/** The parameters of a query that an example is stated of, without which some calls are refused. */
export const exampleQuery = (spec: Body, ids: Present, except?: string): string =>
  spec.parameters
    .filter(({ example, in: place, name }: Body) => place === "query" && example !== undefined && name !== except)
    .map(({ example, name }: Body) => `${name}=${encodeURIComponent(fill(String(example), ids))}`)
    .join("&")
