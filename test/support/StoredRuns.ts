import type { Row } from "./sql.ts"

/** Reads stored runs of workflows, without the product's own code. */

interface StoredStep {
  readonly status: "pending" | "running" | "succeeded" | "failed" | "skipped"
  readonly attempt: number
  readonly wait: { readonly kind: string; readonly until: number } | null
  readonly ports: ReadonlyArray<string>
  readonly error: { readonly code: string } | null
  readonly handled: boolean
  readonly skipReason: string | null
}

export interface StoredRun {
  readonly id: string
  readonly requestId: string
  readonly status: string
  readonly outcome: string | null
  readonly parts: number
  /** By position in the workflow. Each step is as in the last journal entry that names it, with its output. */
  readonly steps: ReadonlyMap<number, StoredStep & { readonly output: unknown }>
  /** The journal entry in which each step had ended, and the time of that entry (Unix ms). */
  readonly ended: ReadonlyMap<number, { readonly part: number; readonly at: number }>
  /** Violations of the rules for stored runs, in words. */
  readonly faults: ReadonlyArray<string>
}

interface Part {
  readonly part: number
  readonly steps: string
  readonly outputs: string | null
  readonly created_at: Date
}

interface Progress {
  readonly run: { readonly finishedAt: number | null }
  /** A status that is left out is `pending`: a callback that came before its step waits changes that step. */
  readonly steps: Readonly<Record<string, Omit<StoredStep, "status"> & { readonly status?: StoredStep["status"] }>>
}

const isOver = ({ status }: StoredStep): boolean => status !== "pending" && status !== "running"

type Ask = (statement: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>

/** All runs of a workflow, ordered by the time of their requests. */
export const readRuns = async (ask: Ask, workflowId: string): Promise<ReadonlyArray<StoredRun>> => {
  const runs = await ask(
    `select r.id, r.request_id, r.status, r.outcome, r.parts, r.finished_at is not null as finished,
      exists (select from workflow_queue q where q.run_id = r.id) as queued
    from workflow_runs r where r.workflow_id = $1 order by r.id`,
    [workflowId]
  )
  const parts = await ask(
    `select s.run_id, s.part, s.steps, s.outputs, s.created_at from workflow_steps s
      where s.run_id = any($1) order by s.run_id, s.part, s.id`,
    [runs.map(({ id }) => id)]
  )
  const partsOf = Map.groupBy(parts, ({ run_id }) => run_id)
  return runs.map((run) => fold(run, (partsOf.get(run["id"]) ?? []) as unknown as ReadonlyArray<Part>))
}

const fold = (run: Row, parts: ReadonlyArray<Part>): StoredRun => {
  const faults: Array<string> = []
  const steps = new Map<number, StoredStep & { readonly output: unknown }>()
  const ended = new Map<number, { readonly part: number; readonly at: number }>()
  let ends = 0
  for (const [at, { created_at, outputs, part, steps: text }] of parts.entries()) {
    if (part !== at + 1) faults.push(`part ${part} in the place of ${at + 1}`)
    const lines = outputs === null ? [] : outputs.split("\n")
    const given = new Map(lines.map((line) => JSON.parse(line) as readonly [string, { readonly output?: unknown }]))
    const progress = JSON.parse(text) as Progress
    if (progress.run.finishedAt !== null) ends++
    for (const [key, changed] of Object.entries(progress.steps)) {
      const index = Number(key)
      const step: StoredStep = { ...changed, status: changed.status ?? "pending" }
      if (ended.has(index))
        faults.push(`step ${index} had ended by part ${ended.get(index)!.part} and is in part ${part}`)
      steps.set(index, { ...step, output: given.get(key)?.output ?? steps.get(index)?.output ?? null })
      if (isOver(step)) ended.set(index, { part, at: created_at.getTime() })
    }
  }
  if (ends !== (run["finished"] === true ? 1 : 0)) faults.push(`ended ${ends} times`)
  if (parts.length !== run["parts"]) faults.push(`${parts.length} parts, and ${String(run["parts"])} counted`)
  if (run["finished"] === run["queued"])
    faults.push(run["finished"] === true ? "ended and queued" : "neither ended nor queued")
  return {
    id: String(run["id"]),
    requestId: String(run["request_id"]),
    status: String(run["status"]),
    outcome: run["outcome"] as string | null,
    parts: parts.length,
    steps,
    ended,
    faults
  }
}
