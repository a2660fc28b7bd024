import { Effect, Option } from "effect"
import { Client } from "@tidegate/client/source"
import { failureOf } from "../Failure.ts"
import { access, idsOf } from "../Gateway.ts"
import { keepLooking, type Print } from "../Looker.ts"
import { Json, jsonLine, plain } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"

interface Asked {
  readonly workflow: ReadonlyArray<string>
  readonly status: ReadonlyArray<"queued" | "running" | "succeeded" | "failed">
  readonly errorCode: ReadonlyArray<string>
  readonly label: Option.Option<string>
}

const pageLength = 100
/** How many runs' last states are remembered. */
const maxSeen = 10_000

interface Run {
  readonly id: string
  readonly workflow_id: string
  readonly workflow_name?: string | null
  readonly label: string | null
  readonly status: string
  readonly outcome: string | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly error_step_id: string | null
  readonly attempt_count: number
  readonly updated_at: string
}

const runLine = (run: Run): string => {
  const { error_code, error_message, error_step_id, id, label, outcome, status, updated_at, workflow_id } = run
  const name = run.workflow_name ?? workflow_id
  const error = error_code === null ? "" : ` ${error_step_id ?? ""} ${error_code}: ${error_message ?? ""}`
  return `${updated_at} ${id} ${status}${outcome === null || outcome === status ? "" : ` ${outcome}`} ${name}${
    label === null ? "" : ` (${label})`
  }${error}`
}

/** Prints each run again when its state has changed. Runs that the first look finds are not printed. */
const follower = (print: (run: Run) => void) => {
  const seen = new Map<string, string>()
  let isFirst = true
  return (runs: ReadonlyArray<Run>): void => {
    for (const run of runs.toReversed()) {
      const state = `${run.status} ${run.attempt_count}`
      if (seen.get(run.id) === state) continue
      seen.delete(run.id)
      seen.set(run.id, state)
      if (!isFirst) print(run)
    }
    for (const oldest of seen.keys()) {
      if (seen.size <= maxSeen) break
      seen.delete(oldest)
    }
    isFirst = false
  }
}

/** Shows runs of workflows as they begin and end. */
export const logs = Effect.fn(function* ({ errorCode, label, status, workflow }: Asked) {
  const ids = yield* idsOf("workflow", workflow)
  const who = yield* access
  const isJson = yield* Json
  const query = {
    limit: pageLength,
    ...(status.length > 0 ? { status: [...status] } : {}),
    ...(errorCode.length > 0 ? { error_code: [...errorCode] } : {}),
    ...(Option.isSome(label) ? { label: label.value } : {})
  }
  return yield* untilStopped(
    Effect.tryPromise({
      try: async (signal) => {
        const client = new Client(who)
        const print: Print = (json, words) => void process.stdout.write(`${isJson ? jsonLine(json) : plain(words)}\n`)
        const follow = follower((run) => print({ type: "run", run }, runLine(run)))
        const look = async (): Promise<void> => {
          const pages =
            ids.length === 0
              ? [await client.get("/workflow-activity", { params: { query }, signal })]
              : await Promise.all(
                  ids.map((id) => client.get("/workflows/{id}/runs", { params: { path: { id }, query }, signal }))
                )
          follow(pages.flatMap(({ models }) => models as ReadonlyArray<Run>))
        }
        await look()
        print({ type: "watching" }, "watching runs (Ctrl-C to stop)")
        await keepLooking(look, print, signal)
      },
      catch: failureOf
    })
  )
})
