import type { Effect, Schema } from "effect"
import { newId, prefixes } from "@tidegate/model/Ids"
import { readJson } from "@tidegate/json/JsonText"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { parseQuery, storedHeaders, type Values } from "@tidegate/model/Message"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { payloadGone } from "@tidegate/storage/Tables"
import { isOwnInput } from "@tidegate/storage/workflows/RunInputs"
import type { RunTransition } from "@tidegate/storage/workflows/RunJournal"
import type { DueRun, StoredPart } from "@tidegate/storage/workflows/Runs"
import type { Advanced } from "@tidegate/workflows/Advance"
import { workflowKind } from "@tidegate/workflows/kinds/WorkflowStep"
import { limits } from "@tidegate/workflows/Limits"
import { type PreviewRoom, storedPreviewOf } from "@tidegate/workflows/Preview"
import { folding, hasOutput, lineOf, outputsIn, type Part, partOf, progressText } from "@tidegate/workflows/Progress"
import { type Facts, queuedRun, type RunState } from "@tidegate/workflows/RunState"
import { SecretTexts } from "@tidegate/workflows/SecretTexts"
import type { Resumable, StepAnswer } from "@tidegate/workflows/StepKind"
import { undoFault } from "@tidegate/workflows/Undo"
import type { Workflow } from "@tidegate/workflows/Workflow"
import type { RunLinks } from "./StepLinks.ts"

/** Translates between a run's rows and the state that the engine uses. */

const nothing = new Uint8Array(0)

/**
 * The data that a run's steps read besides outputs of other steps. Credentials that the sender presented appear as masks, as in
 * rules and transformations. A large body is parsed within the event-loop budget.
 */
export const factsOf = (
  run: DueRun,
  workflow: { readonly id: string; readonly name: string; readonly version: number },
  links: RunLinks | null = null
): Effect.Effect<Facts> => inSlices(takenApart(run, workflow, links))

type Request = Pick<DueRun, "body" | "ingested_at" | "method" | "path" | "query" | "request_id">

function* requestIn({ body, ingested_at, method, path, query, request_id }: Request, headers: Values) {
  const parsed = yield* parsingBody(headers, body ?? nothing)
  yield
  return {
    request_id,
    received_at: ingested_at.toISOString(),
    method,
    path,
    headers,
    query: parseQuery(query),
    body: parsed
  }
}

/** The requests of a batch as its run's steps read them. The batch usually contains the run's own request. */
function* batchIn(
  batch: NonNullable<DueRun["batch"]>,
  own: { readonly request_id: string }
): Resumable<ReadonlyArray<unknown>> {
  const requests: Array<unknown> = []
  for (const one of batch) {
    const { ingested_at, request_id } = one
    if (request_id === own.request_id) requests.push(own)
    else if (one.headers !== payloadGone) requests.push(yield* requestIn(one, storedHeaders(one)))
    else requests.push({ request_id, received_at: ingested_at.toISOString(), unavailable: true })
  }
  return requests
}

/** `links`: the URLs of steps of the run that wait. */
export function* takenApart(run: DueRun, workflow: Facts["workflow"], links: RunLinks | null): Resumable<Facts> {
  const headers = storedHeaders(run)
  const source = { id: run.source_id, name: run.source_name }
  const trigger = yield* requestIn(run, headers)
  const { batch } = run
  return {
    trigger: { ...trigger, source, ...(batch === undefined ? {} : { batch: yield* batchIn(batch, trigger) }) },
    run: {
      id: run.id,
      started_at: run.created_at.toISOString(),
      attempt: run.attempts,
      ...(links === null ? {} : { waits: links.waits })
    },
    workflow,
    source
  }
}

/** All values under secret names in the run's request and in the outputs of its steps, and the tokens in the URLs of its steps. */
export function* secretTextsOf(
  { trigger: { batch = [], body, headers, query } }: Facts,
  { steps }: RunState,
  links: RunLinks | null = null
): Resumable<SecretTexts> {
  const texts = new SecretTexts()
  if (links !== null) yield* texts.learn({ tokens: links.tokens })
  yield* texts.learn([body, headers as Schema.JsonObject, query as Schema.JsonObject, batch as Schema.JsonArray])
  for (const { iterations, output } of steps) {
    if (output !== null) yield* texts.learn(output)
    // A list that has not been finished.
    else if (iterations !== null) yield* texts.learn(iterations.items.filter((item) => item !== undefined))
  }
  return texts
}

/** The state of a run, from its stored journal entries. With carried data, only the later entries are needed. */
export function* storedState(
  workflow: Workflow,
  parts: ReadonlyArray<StoredPart>,
  carried: RunState = queuedRun(workflow)
): Resumable<RunState> {
  const stored: Array<Part> = []
  for (const { outputs, steps } of parts) {
    stored.push({ progress: readJson(steps) as Part["progress"], outputs: yield* outputsIn(outputs) })
  }
  return yield* folding(workflow, stored, carried)
}

/** How many steps have each status. */
export const countsOf = ({ steps }: RunState) => {
  const count = { pending: 0, running: 0, succeeded: 0, failed: 0, skipped: 0 }
  for (const { status } of steps) count[status]++
  return count
}

const isUnderWay = ({ steps }: RunState): boolean =>
  steps.some(({ status, wait }) => status === "running" && wait === null)

/** The longest lifetime of a run (ms). */
export const longestLife = 60 * 86_400_000

/**
 * When the run continues (Unix ms); null: it has ended. With a call under way or on hold it stays due at `since`: then the next
 * process finds a call that was under way, and the release of the workflow finds a held run.
 */
export const dueAt = (state: RunState, createdAt: number, since: number): number | null => {
  if (state.finishedAt !== null) return null
  if (state.held || isUnderWay(state)) return since
  const waits = state.steps.flatMap(({ wait }) => (wait === null ? [] : [wait.until]))
  return waits.length === 0 ? since : Math.min(...waits, createdAt + longestLife)
}

/** Why an ended run has failed. An undo that is not complete needs somebody, so it comes before the failure that it followed. */
const errorOf = (workflow: Workflow, state: RunState): RunTransition["error"] => {
  const { plan } = workflow
  const { steps, stopped } = state
  const isCause = ({ index, undoes }: Workflow["plan"][number]): boolean =>
    undoes === null && steps[index]!.status === "failed" && !steps[index]!.handled
  const cause = stopped === null ? plan.findIndex(isCause) : stopped.step
  const causedBy = (stopped === null ? steps[cause ?? -1]?.error : stopped.error) ?? null
  const undo = undoFault(workflow, state, causedBy)
  const failed = undo === null ? cause : undo.step
  const error = undo === null ? causedBy : undo.error
  if (error === null) return null
  const stepId = failed === null ? null : (plan[failed]?.step.id ?? null)
  // A text column of PostgreSQL cannot hold NUL, and code may throw a message that contains one.
  const plain = (text: string): string => text.slice(0, 2_000).replaceAll("\u0000", "").toWellFormed()
  return { code: plain(error.code), message: plain(error.message), stepId }
}

/** The answer in an error as a preview: its secrets are masked already. Null: there is no news of it, or no room. */
const answerShown = (answer: StepAnswer | null | undefined, room: PreviewRoom): string | null => {
  if (answer === undefined) return null
  const text = JSON.stringify(answer)
  if (text.length > room.left) return null
  room.left -= text.length
  return `"answer":${text}`
}

/** Whether no run can have begun this one, and it can have begun none. */
const isAlone = ({ plan }: Workflow, { request_id }: DueRun): boolean =>
  !isOwnInput(request_id) && plan.every(({ step }) => step.kind !== workflowKind.kind)

/** The number of the journal entry that is written, its time, and the data that the run carries into a wait. */
export interface Writing {
  readonly part: number
  readonly now: number
  readonly due: number | null
  readonly moves: boolean
  readonly carried: string | null
  readonly resources: string | null
  /** Of a run that begins. */
  readonly label?: string | null
}

/**
 * The rows that a transition changes, with previews of the steps' inputs and outputs. Previews that exceed the limit have only
 * their size and hash.
 */
export function* transitionOf(
  workflow: Workflow,
  run: DueRun,
  before: RunState,
  { inputs, state }: Advanced,
  texts: SecretTexts,
  { carried, due, label = null, moves, now, part, resources }: Writing
): Resumable<RunTransition> {
  const { outputs, progress } = partOf(before, state)
  const room: PreviewRoom = { left: limits.previews }
  const shown = new Map<number, string>()
  for (const [step, input] of inputs) {
    const preview = storedPreviewOf(input, texts, room)
    shown.set(step, `"input":${typeof preview === "string" ? preview : yield* preview}`)
  }
  const add = (step: number, text: string): void => {
    const given = shown.get(step)
    shown.set(step, given === undefined ? text : `${given},${text}`)
  }
  const lines: Array<string> = []
  for (const at of Object.keys(outputs ?? {})) {
    const step = Number(at)
    const given = outputs![at]!
    const answer = answerShown(given.answer, room)
    if (answer !== null) add(step, answer)
    const { output } = state.steps[step]!
    // The output and its preview are mostly the same text.
    const text = JSON.stringify(output)
    lines.push(lineOf(at, given, text))
    yield
    if (!hasOutput(given)) continue
    const preview = storedPreviewOf(output, texts, room, text)
    add(step, `"output":${typeof preview === "string" ? preview : yield* preview}`)
  }
  const { failed, running, skipped, succeeded } = countsOf(state)
  return {
    id: run.id,
    teamId: run.team_id,
    part,
    partId: newId(prefixes.workflowPart, now),
    at: now,
    status: state.status,
    outcome: state.outcome,
    attempts: run.attempts,
    succeeded,
    failed,
    skipped,
    running,
    kept: state.steps.reduce((sum, { size }) => sum + size, 0),
    error: state.finishedAt === null ? null : errorOf(workflow, state),
    alone: due === null && isAlone(workflow, run),
    label,
    startedAt: state.startedAt,
    finishedAt: state.finishedAt,
    dueAt: due,
    moves,
    carried,
    steps: progressText(progress),
    resources,
    outputs: outputs === null ? null : lines.join("\n"),
    // No previews are stored as an empty object, because null means that retention has deleted them.
    previews: `{${Array.from(shown, ([step, both]) => `"${step}":{${both}}`).join(",")}}`
  }
}
