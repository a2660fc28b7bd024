import { Effect, Result } from "effect"
import { parseQuery, storedHeaders } from "@tidegate/model/Message"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { payloadGone } from "@tidegate/storage/Tables"
import type { DueRun } from "@tidegate/storage/workflows/Runs"

const nothing: ReadonlyMap<string, string> = new Map()
const noBody = new Uint8Array(0)

/** The values of runs at a path of what began them, as short hashes. A run without a value there has none. */
export const keysOf = Effect.fnUntraced(function* (
  runs: ReadonlyArray<DueRun>,
  path: string
): Effect.fn.Return<ReadonlyMap<string, string>> {
  const key = Result.getOrNull(compileOrdering(path))
  if (key === null) return nothing
  const keys = new Map<string, string>()
  for (const run of runs) {
    if (run.headers === payloadGone) continue
    const headers = storedHeaders(run)
    const body = key.looksAtBody ? yield* inSlices(parsingBody(headers, run.body ?? noBody)) : null
    const of = key.of({ headers, path: run.path, query: parseQuery(run.query), body: () => body })
    if (of !== null) keys.set(run.id, of)
  }
  return keys
})
