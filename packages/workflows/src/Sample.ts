import { type MessageHead, parseQuery } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { previewOf } from "./Preview.ts"
import type { Resumable } from "./StepKind.ts"

/** A sample request for people who build a workflow: the parts that steps read, with secrets masked. Null: it is too large. */
export function* sampleOf({ headers, method, path, query }: MessageHead, body: Uint8Array): Resumable<Json> {
  const parts = { method, path, headers, query: { ...parseQuery(query) }, body: yield* parsingBody(headers, body) }
  return (yield* previewOf(parts)).preview
}
