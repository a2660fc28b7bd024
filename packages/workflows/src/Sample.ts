import { type MessageHead, parseQuery } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { previewOf } from "./Preview.ts"
import type { Resumable } from "./StepKind.ts"

/** A request as people see it who build a workflow for its like: what steps read of it, without what is secret. Null: it is too large. */
export function* sampleOf({ headers, method, path, query }: MessageHead, body: Uint8Array): Resumable<Json> {
  const parts = { method, path, headers, query: { ...parseQuery(query) }, body: yield* parsingBody(headers, body) }
  return (yield* previewOf(parts)).preview
}
