import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import { inSlices, yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { RequestData } from "@tidegate/model/Request"
import type {
  PayloadPreview,
  ResourceEvidence,
  RunTrigger,
  VersionEvidence,
  WorkflowRunDetail
} from "@tidegate/model/WorkflowRun"
import { triggerNames } from "@tidegate/model/WorkflowTriggers"
import { shownOf } from "@tidegate/redaction/Redaction"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { charactersOf, noPreview, previewOf, previewsIn } from "@tidegate/workflows/Preview"
import { detailOf, type PreviewsOf, runOf, StepReports } from "@tidegate/workflows/RunReport"
import type { StepAnswer } from "@tidegate/workflows/StepKind"
import { shownGraph } from "@tidegate/workflows/StepCredentials"
import { itemMode, modeHeader, triggerOfSource } from "../channels/SourceTrigger.ts"
import type { HotSql } from "../Database.ts"
import { isOwnInput } from "../workflows/RunInputs.ts"
import { namedResources } from "../workflows/RunResources.ts"
import { headerOf, readHeaders } from "./Payload.ts"
import { inputPayload, requestPayloads } from "./RequestPayloads.ts"
import { workflowOf } from "./RunReads.ts"
import { type RunRow, visitEntries } from "./RunRow.ts"

/** A run shows bodies up to this many bytes, as steps do. */
const largestTrigger = 256 * 1024
/**
 * Limits of previews, for one journal entry and for all. An entry has the previews of all steps that ran one after the other
 * within the process.
 */
const largestPart = 2 * 1024 * 1024
const readAtMost = 8 * 1024 * 1024
/** The limit of all previews of an answer, in characters: it is serialized in one go. */
const shownAtMost = 1024 * 1024

interface VersionRow {
  readonly name: string
  readonly definition_hash: string
  readonly created_at: Date
  readonly created_by_user_id: string | null
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}

const formatterOf = (steps: ReadonlyArray<Step>): string | null => {
  for (const { config } of steps) {
    const formatter = config["formatter"]
    const version =
      typeof formatter === "object" && formatter !== null && "engine_version" in formatter
        ? formatter["engine_version"]
        : undefined
    if (typeof version === "string") return version
  }
  return null
}

/** `bodyHash`: the hash of the stored body. */
const triggerPreview = Effect.fnUntraced(function* (
  data: RequestData | undefined,
  bodyHash: string | null
): Effect.fn.Return<PayloadPreview> {
  if (data === undefined) return noPreview("expired")
  const { body, content_type, encoding, headers, is_large_payload, parsed_query, size_bytes } = data
  const about = { content_type, size_bytes }
  // About the body as it was received and can be downloaded, whatever part of it is shown here.
  const received = { ...about, sha256: bodyHash === null ? null : `sha256:${bodyHash}` }
  if (is_large_payload) return noPreview("too_large", received)
  if (encoding === "base64" && size_bytes > 0) return noPreview("binary", received)
  return { ...(yield* inSlices(previewOf({ headers, query: parsed_query, body }))), ...received }
})

interface RequestRow {
  readonly method: string
  readonly path: string
  readonly headers: string
  readonly body_size: number
  readonly ingested_at: Date
  readonly retry_kind: string | null
  readonly body_hash: string | null
}

/** How an item of a provider has arrived; its request has a header that says so. */
const modeOf = (request: RequestRow | undefined) =>
  itemMode(request === undefined ? null : headerOf(readHeaders(request.headers), modeHeader))

/** The input of a run that has its own, as a request is read. */
const ownInput = Effect.fnUntraced(function* (team: string, runId: string, withPreview: boolean) {
  const sql = yield* SqlClient.SqlClient
  const [request] = yield* sql<RequestRow>`
    select method, path, headers, body_size, ingested_at, null as retry_kind,
      case when ${withPreview} then encode(sha256(body), 'hex') end as body_hash
    from workflow_inputs where run_id = ${runId} and team_id = ${team}`
  return { request, data: withPreview ? yield* inputPayload(team, runId, largestTrigger) : undefined }
})

const ofRequest = Effect.fnUntraced(function* (team: string, id: string, withPreview: boolean) {
  const sql = yield* SqlClient.SqlClient
  // A large body is not read only to hash it.
  const [request] = yield* sql<RequestRow>`
    select method, path, headers, body_size, ingested_at, retry_kind,
      case when ${withPreview} then encode(sha256(body), 'hex') end as body_hash
    from requests where id = ${id} and team_id = ${team}`
  return { request, data: withPreview ? (yield* requestPayloads(team, [id], largestTrigger)).get(id) : undefined }
})

const triggerOf = Effect.fnUntraced(function* (
  { created_at, request_id, source_id, team_id, trigger = null }: RunRow,
  withPreview: boolean
): Effect.fn.Return<RunTrigger, SqlError.SqlError, SqlClient.SqlClient> {
  const read = isOwnInput(request_id) ? ownInput : ofRequest
  const { data, request } = yield* read(team_id, request_id, withPreview)
  const { source, trigger: ofSource } = yield* triggerOfSource(team_id, source_id)
  const { definition_key, name, provider_key } = ofSource
  // Retention leaves the record without its payload.
  const kept = request === undefined || request.method === "" ? undefined : request
  return {
    type: trigger ?? "request",
    request_id,
    source: {
      id: source_id,
      name: source,
      provider_key,
      definition_key,
      trigger_name: trigger === null ? name : triggerNames[trigger]
    },
    delivery_mode:
      trigger !== null
        ? "manual"
        : request?.retry_kind != null
          ? "replay"
          : provider_key === null
            ? "webhook"
            : modeOf(kept),
    method: kept?.method ?? null,
    path: kept === undefined ? null : (shownOf()("path", kept.path) as string),
    content_type: kept === undefined ? null : headerOf(readHeaders(kept.headers), "content-type"),
    size_bytes: request?.body_size ?? null,
    received_at: (request?.ingested_at ?? created_at).toISOString(),
    is_retry: request?.retry_kind != null,
    preview: withPreview ? yield* triggerPreview(data, request?.body_hash ?? null) : null
  }
})

/** A resource that was missing when the run began has only these members. */
type NamedThen = Pick<ResourceEvidence, "step_id" | "type" | "id"> &
  Partial<Pick<ResourceEvidence, "name" | "content_hash" | "updated_at">>

/** The resources that a run's steps named when it began, as recorded then, and whether each still exists. */
const resourcesOf = Effect.fnUntraced(function* ({
  id,
  team_id
}: RunRow): Effect.fn.Return<ReadonlyArray<ResourceEvidence>, SqlError.SqlError, SqlClient.SqlClient | HotSql> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ resources: string | null }>`
    select resources from workflow_steps
    where run_id = ${id} and part = 1 and id >= ${idBound(prefixes.workflowPart, idTime(id) ?? 0)}`
  const named = JSON.parse(row?.resources ?? "[]") as ReadonlyArray<NamedThen>
  const found = yield* namedResources(team_id, [...new Set(named.map((resource) => resource.id))])
  const there = new Set(found.map((resource) => resource.id))
  return named.map(({ content_hash = null, id, name = null, step_id, type, updated_at = null }) => {
    return { step_id, type, id, name, content_hash, updated_at, exists: there.has(id) }
  })
})

const noAnswers: ReadonlyMap<number, StepAnswer> = new Map()

interface PreviewRow {
  readonly part: number
  /** JSON; null when it is too large to read. */
  readonly previews: string | null
}

/** The latest preview of each of a run's steps. */
const stepPreviews = Effect.fnUntraced(function* (
  { id }: RunRow,
  reports: StepReports
): Effect.fn.Return<PreviewsOf, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<PreviewRow>`
    with listed as materialized (
      select id, part, octet_length(previews) as size from workflow_steps
      where run_id = ${id} and id >= ${idBound(prefixes.workflowPart, idTime(id) ?? 0)} and previews is not null
      order by part desc limit 2000
    ), chosen as (
      select id, part, size, sum(least(size, ${largestPart}::int4)) over (order by part desc) as until from listed
    )
    select c.part, case when c.size <= ${largestPart} and c.until <= ${readAtMost} then
      (select s.previews from workflow_steps s where s.id = c.id limit 1) end as previews
    from chosen c order by c.part desc`
  const parts = new Set(rows.map(({ part }) => part))
  const unread = new Set(rows.flatMap(({ part, previews }) => (previews === null ? [part] : [])))
  const found = new Map<string, PayloadPreview>()
  const answers = new Map<number, Map<number, StepAnswer | null>>()
  let left = shownAtMost
  for (const { part, previews } of rows) {
    if (previews === null) continue
    const since = performance.now()
    for (const [step, of] of previewsIn(previews)) {
      if (part < reports.lifeOf(step).since) continue
      const { answer } = of
      const answerLength = answer == null ? 0 : charactersOf(answer as never, left)
      if (answer !== undefined && answerLength !== null) {
        left -= answerLength
        if (!answers.has(step)) answers.set(step, new Map())
        answers.get(step)!.set(part, answer)
      }
      for (const kind of ["input", "output"] as const) {
        const one = of[kind]
        if (one === undefined || found.has(`${step} ${kind}`)) continue
        const length = charactersOf(one.preview, left)
        left -= length ?? 0
        found.set(
          `${step} ${kind}`,
          length === null ? { ...one, available: false, truncated: true, preview: null, reason: "too_large" } : one
        )
      }
    }
    yield* yieldIfSpent(since)
  }
  return (index) => {
    const { begunIn, endedIn } = reports.lifeOf(index)
    if (begunIn === null) return null
    const of = (kind: "input" | "output", part: number | null): PayloadPreview => {
      const one = found.get(`${index} ${kind}`)
      if (one !== undefined) return one
      if (part !== null && unread.has(part)) return noPreview("too_large")
      return noPreview(part === null || parts.has(part) ? "not_captured" : "expired")
    }
    return {
      input: of("input", begunIn),
      output: of("output", endedIn),
      answers: answers.get(index) ?? noAnswers
    }
  }
})

/**
 * One run of a workflow: its version, its trigger and its steps. Outputs of steps are not read; previews are read when requested.
 */
export const get = Effect.fnUntraced(function* (
  team: string,
  workflowId: string,
  id: string,
  withPreviews: boolean
): Effect.fn.Return<WorkflowRunDetail, GatewayError | SqlError.SqlError, SqlClient.SqlClient | HotSql> {
  const sql = yield* SqlClient.SqlClient
  const workflow = yield* workflowOf(team, workflowId)
  const [run] = yield* sql<RunRow>`
    select * from workflow_runs where id = ${id} and workflow_id = ${workflowId} and team_id = ${team}`
  if (run === undefined) return yield* notFound("workflow_run", id)
  const [stored] = yield* sql<VersionRow>`
    select v.name, v.definition_hash, v.created_at, v.created_by_user_id, d.steps, d.edges from workflow_versions v
      join workflow_versions d on d.workflow_id = v.workflow_id and d.version = v.defined_in
    where v.workflow_id = ${workflowId} and v.version = ${run.version}`
  const { edges = [], steps = [] } = stored ?? {}
  const reports = new StepReports(id, { steps, edges })
  yield* visitEntries([run], null, ({ created_at, part, steps: entry }) =>
    reports.take({ part, at: created_at.getTime(), steps: entry })
  )
  const version: VersionEvidence = {
    number: run.version,
    definition_hash: stored?.definition_hash ?? "",
    created_at: (stored?.created_at ?? run.created_at).toISOString(),
    created_by_user_id: stored?.created_by_user_id ?? null,
    current_version: workflow.version,
    is_current: run.version === workflow.version,
    workflow_name: stored?.name ?? workflow.name,
    ...(shownGraph({ steps, edges }) as unknown as Pick<VersionEvidence, "steps" | "edges">),
    formatter_engine_version: formatterOf(steps),
    resources: yield* resourcesOf(run)
  }
  return detailOf(runOf(run, workflow.status === "paused"), {
    version,
    trigger: yield* triggerOf(run, withPreviews),
    retriedStepId: run.retried_step_id,
    retriedAt: run.retried_at,
    reports,
    ...(withPreviews ? { previewsOf: yield* stepPreviews(run, reports) } : {})
  })
})
