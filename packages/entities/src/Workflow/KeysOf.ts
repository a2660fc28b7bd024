import { Effect, Result } from "effect"
import { parseQuery, storedHeaders } from "@tidegate/model/Message"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { FilterInput } from "@tidegate/rules/Filter"
import { compileOrdering, compileRequestValue } from "@tidegate/rules/Ordering"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { payloadGone } from "@tidegate/storage/Tables"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { priorityOf, usualPriority } from "@tidegate/workflows/triggers/Priority"

const nothing: ReadonlyMap<string, string> = new Map()
const noBody = new Uint8Array(0)

/** Shows what began each run. What retention has removed is left out. */
const forEachRequest = Effect.fnUntraced(function* (
  runs: ReadonlyArray<DueRun>,
  looksAtBody: boolean,
  show: (id: string, request: FilterInput) => void
): Effect.fn.Return<void> {
  for (const run of runs) {
    if (run.headers === payloadGone) continue
    const headers = storedHeaders(run)
    const body = looksAtBody ? yield* inSlices(parsingBody(headers, run.body ?? noBody)) : null
    show(run.id, { headers, path: run.path, query: parseQuery(run.query), body: () => body })
  }
})

/** The values of runs at a path of what began them, as short hashes. A run without a value there has none. */
export const keysOf = Effect.fnUntraced(function* (
  runs: ReadonlyArray<DueRun>,
  path: string
): Effect.fn.Return<ReadonlyMap<string, string>> {
  const key = Result.getOrNull(compileOrdering(path))
  if (key === null) return nothing
  const keys = new Map<string, string>()
  yield* forEachRequest(runs, key.looksAtBody, (id, request) => {
    const of = key.of(request)
    if (of !== null) keys.set(id, of)
  })
  return keys
})

/** Where a run stands in line: among the runs of a key, by its priority. */
interface Place {
  readonly key: string
  readonly priority: number
}

/** Where runs stand in the line of their workflow. Runs without a value at the key of the concurrency have the key "". */
export const placesOf = Effect.fnUntraced(function* (
  runs: ReadonlyArray<DueRun>,
  { concurrency, priority }: Pick<WorkflowTriggers, "concurrency" | "priority">
): Effect.fn.Return<(id: string) => Place> {
  const keyed = concurrency?.key == null ? null : Result.getOrNull(compileOrdering(concurrency.key))
  const ranked = priority === null ? null : Result.getOrNull(compileRequestValue(priority.key))
  const otherwise = priority?.default ?? usualPriority
  const places = new Map<string, Place>()
  if (keyed !== null || ranked !== null) {
    yield* forEachRequest(runs, keyed?.looksAtBody === true || ranked?.looksAtBody === true, (id, request) => {
      const key = keyed?.of(request) ?? ""
      places.set(id, { key, priority: ranked === null ? usualPriority : priorityOf(ranked.of(request), otherwise) })
    })
  }
  return (id) => places.get(id) ?? { key: "", priority: otherwise }
})
