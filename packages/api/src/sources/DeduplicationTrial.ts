import { Effect } from "effect"
import {
  type DeduplicationTest,
  type DeduplicationTestMessage,
  judgingDeduplication,
  maxTestedBytes,
  type TriedDeduplication
} from "@tidegate/resources/DeduplicationTest"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { newestRouted, type RoutedRequest, routedContent } from "@tidegate/storage/reads/RoutedRequestReads"
import type { Reader } from "../handlers/Calls.ts"

/** Those whose content can be read, newest first: their bodies are limited together. */
const readable = (rows: ReadonlyArray<RoutedRequest>): ReadonlyArray<RoutedRequest> => {
  let bytes = 0
  return rows.filter(({ body_size, kept }) => kept && (bytes += body_size) <= maxTestedBytes)
}

/** The key of a request; undefined: its content has gone meanwhile. One body is in memory at a time. */
const keyOf = Effect.fnUntraced(function* (
  reading: Reader,
  team: string,
  { id, is_replay }: RoutedRequest,
  deduplication: TriedDeduplication
) {
  // A replay is never a duplicate.
  if (is_replay) return null
  const content = yield* reading(routedContent(team, id))
  return content === null ? undefined : yield* inSlices(deduplication.keying(content.head, content.body))
})

interface Opened {
  readonly id: string
  readonly at: Date
}

/** Which of the latest requests of a source a rule would ignore, if all others became events. Nothing is stored. */
export const tryDeduplication = Effect.fnUntraced(function* (
  reading: Reader,
  team: string,
  sourceId: string,
  { limit, rule: written }: DeduplicationTestMessage
) {
  const deduplication = yield* Effect.flatMap(inSlices(judgingDeduplication(written)), Effect.fromResult)
  const rows = yield* reading(newestRouted(team, sourceId, limit))
  const opened = new Map<string, Opened>()
  const duplicates: Array<(typeof DeduplicationTest.Type)["duplicates"][number]> = []
  let [tested, withoutKey] = [0, 0]
  for (const row of readable(rows).toReversed()) {
    const key = yield* keyOf(reading, team, row, deduplication)
    if (key === undefined) continue
    tested++
    if (key === null) {
      withoutKey++
      continue
    }
    const first = opened.get(key)
    if (first === undefined || row.ingested_at.getTime() >= first.at.getTime() + deduplication.windowMs) {
      opened.set(key, { id: row.id, at: row.ingested_at })
      continue
    }
    duplicates.push({
      request_id: row.id,
      ingested_at: row.ingested_at.toISOString(),
      first_request_id: first.id,
      first_ingested_at: first.at.toISOString()
    })
  }
  return { source_id: sourceId, tested, unavailable: rows.length - tested, without_key: withoutKey, duplicates }
})
