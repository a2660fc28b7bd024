import { readJson } from "@tidegate/json/JsonText"
import type { BatchedInput } from "@tidegate/storage/workflows/BatchInputs"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { payloadGone } from "@tidegate/storage/Tables"
import { linesOf, outputsIn, type Part, partOf, progressText, stateOf } from "@tidegate/workflows/Progress"
import { queuedRun, type RunState } from "@tidegate/workflows/RunState"
import type { Resumable } from "@tidegate/workflows/StepKind"
import type { Workflow } from "@tidegate/workflows/Workflow"

/**
 * The data that a run keeps through a wait that may last longer than its payloads are stored: the request that began it, and all
 * outputs of its steps so far. It is text in the run's queue row, and is deleted with that row. It consists of lines, so that no
 * code has to read or write all of it at once.
 */

/** A run that will be older than this (ms) when it continues stores this data. Payloads are kept for at least one day. */
export const carriesBeyond = 86_400_000

type Request = Pick<DueRun, "method" | "path" | "query" | "headers" | "source_name">

interface Head extends Request {
  /** The last journal entry whose outputs are included. */
  readonly part: number
  readonly ingested_at: number
  /** How many lines of a batch follow the body; absent: the run carries out no batch. */
  readonly batch?: number
}

/** A request of a batch, as a line. */
interface BatchLine extends Omit<BatchedInput, "body" | "ingested_at"> {
  /** Base64. */
  readonly body: string | null
  readonly ingested_at: number
}

function* batchLines(batch: ReadonlyArray<BatchedInput>): Resumable<ReadonlyArray<string>> {
  const lines: Array<string> = []
  for (const { body, headers, ingested_at, method, path, query, request_id } of batch) {
    const text = body === null ? null : Buffer.from(body).toString("base64")
    lines.push(
      JSON.stringify({
        request_id,
        method,
        path,
        query,
        headers,
        ingested_at: ingested_at.getTime(),
        body: text
      } satisfies BatchLine)
    )
    yield
  }
  return lines
}

function* batchFrom(lines: ReadonlyArray<string>): Resumable<ReadonlyArray<BatchedInput>> {
  const batch: Array<BatchedInput> = []
  for (const line of lines) {
    const { body, ingested_at, ...head } = readJson(line) as BatchLine
    batch.push({
      ...head,
      ingested_at: new Date(ingested_at),
      body: body === null ? null : Buffer.from(body, "base64")
    })
    yield
  }
  return batch
}

/** The last journal entry whose outputs are in the carried data; 0: none. */
export const carriedTo = ({ carried }: DueRun): number =>
  carried === null ? 0 : (readJson(carried.slice(0, carried.indexOf("\n"))) as Head).part

export function* carriedOf(workflow: Workflow, run: DueRun, state: RunState, part: number): Resumable<string> {
  const { headers, method, path, query, source_name } = run
  const batch = run.batch === undefined ? null : yield* batchLines(run.batch)
  const head: Head = {
    part,
    method,
    path,
    query,
    headers,
    source_name,
    ingested_at: run.ingested_at.getTime(),
    ...(batch === null ? {} : { batch: batch.length })
  }
  const { outputs, progress } = partOf(queuedRun(workflow), state)
  const body = run.body === null ? "" : Buffer.from(run.body).toString("base64")
  const lines = yield* linesOf(outputs)
  return [
    JSON.stringify(head),
    body,
    ...(batch ?? []),
    progressText(progress),
    ...(lines === null ? [] : [lines])
  ].join("\n")
}

/** A run as it was when its wait began: its request, if retention has deleted that meanwhile, and the state of its steps. */
export function* unpacked(
  workflow: Workflow,
  run: DueRun
): Resumable<{ readonly run: DueRun; readonly state: RunState }> {
  const { carried } = run
  if (carried === null) return { run, state: queuedRun(workflow) }
  const [headEnd, bodyEnd] = ends(carried)
  const { ingested_at, part: _, batch: batchLength, ...request } = readJson(carried.slice(0, headEnd)) as Head
  let batchEnd = bodyEnd
  for (let line = 0; line < (batchLength ?? 0); line++) batchEnd = carried.indexOf("\n", batchEnd + 1)
  const batch =
    batchLength === undefined ? undefined : yield* batchFrom(carried.slice(bodyEnd + 1, batchEnd).split("\n"))
  const stepsEnd = carried.indexOf("\n", batchEnd + 1)
  const end = stepsEnd < 0 ? carried.length : stepsEnd
  const outputs = yield* outputsIn(stepsEnd < 0 ? null : carried.slice(stepsEnd + 1))
  const progress = readJson(carried.slice(batchEnd + 1, end)) as Part["progress"]
  const state = stateOf(workflow, [{ progress, outputs }])
  const whole = batch === undefined ? run : { ...run, batch }
  if (run.headers !== payloadGone) return { run: whole, state }
  const body = Buffer.from(carried.slice(headEnd + 1, bodyEnd), "base64")
  return { run: { ...whole, ...request, body, ingested_at: new Date(ingested_at) }, state }
}

const ends = (carried: string): readonly [head: number, body: number] => {
  const head = carried.indexOf("\n")
  return [head, carried.indexOf("\n", head + 1)]
}
