import { hopByHop, inertPolicy, originWide, policies } from "@tidegate/model/HeaderRules"
import { headerEscape } from "@tidegate/interpolation/Escape"
import { compileTemplate, type Template } from "@tidegate/interpolation/Template"
import { Result } from "effect"
import { below } from "./ConditionInvalid.ts"
import { complain, type Complaint } from "./Decode.ts"
import { type ReplyRoot, replyRoots } from "./ReplyRoots.ts"

/** The headers that an operator may add to an answer of the gateway. */

const maxHeaders = 50
/** Characters of all names and values together, written or rendered: a size that clients accept by default. */
const maxCharacters = 8_192

const forbidden: ReadonlyMap<string, string> = new Map([
  ...[...hopByHop].map((name) => [name, "is about one connection only"] as const),
  ...["content-length", "content-encoding", "host", "date"].map((name) => [name, "is the gateway's to set"] as const),
  ["content-type", "is set by content_type"],
  // The API may have the same origin as the ingress URLs: a source must not set headers that affect a whole origin in browsers.
  ...[...originWide, ...policies].map((name) => [name, "cannot be set by a source"] as const)
])

/**
 * Added to every custom response: an operator's XML or text with a sender's values in it must not run as a page that
 * shares its origin with the API and the dashboard.
 */
const inert = { "content-security-policy": inertPolicy, "x-content-type-options": "nosniff" }

const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/
const value = /^[\t\x20-\x7e\x80-\xff]*$/

/** Those of given headers that an operator may set, up to the limit of their number and size. Others are left out. */
export const settableHeaders = (given: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> => {
  const kept: Array<readonly [string, string]> = []
  let size = 0
  for (const [written, text] of Object.entries(given)) {
    if (typeof text !== "string" || !name.test(written) || !value.test(text)) continue
    if (forbidden.has(written.toLowerCase()) || kept.length === maxHeaders) continue
    size += written.length + text.length
    if (size > maxCharacters) break
    kept.push([written.toLowerCase(), text])
  }
  return { ...Object.fromEntries(kept), ...inert }
}

/** Headers by lower-case name; null if placeholders make them longer than the limit. */
export type CompiledHeaders = (read: (root: ReplyRoot) => unknown) => Readonly<Record<string, string>> | null

/** Compiles headers whose values may contain placeholders; `path` is their place in the input. */
export const compileHeaders = (
  written: Readonly<Record<string, string>>,
  path: string
): Result.Result<CompiledHeaders, Complaint> =>
  Result.gen(function* () {
    const entries = Object.entries(written)
    if (entries.length > maxHeaders) return yield* complain(path, `at most ${maxHeaders} headers are allowed`)
    const templates = new Map<string, Template<ReplyRoot>>()
    for (const [written, text] of entries) {
      const at = below(path, written)
      const header = written.toLowerCase()
      if (!name.test(written)) return yield* complain(at, "is not the name of a header")
      const why = forbidden.get(header)
      if (why !== undefined) return yield* complain(at, `cannot be set here: it ${why}`)
      if (templates.has(header)) return yield* complain(at, "is there twice, in two spellings")
      if (!value.test(text)) return yield* complain(at, "must be a text of one line without control characters")
      const template = yield* Result.mapError(compileTemplate(text.trim(), replyRoots), ({ message }) => ({
        path: at,
        message
      }))
      templates.set(header, template)
    }
    const size = entries.reduce((sum, [name, text]) => sum + name.length + text.length, 0)
    if (size > maxCharacters) return yield* complain(path, `are longer than ${maxCharacters} characters together`)
    return (read) => render(templates, read)
  })

const render = (
  templates: ReadonlyMap<string, Template<ReplyRoot>>,
  read: (root: ReplyRoot) => unknown
): Readonly<Record<string, string>> | null => {
  const headers: Array<readonly [string, string]> = []
  let size = 0
  for (const [header, template] of templates) {
    const text = template.render(read, headerEscape)
    if (text === null) return null
    size += header.length + text.length
    if (size > maxCharacters) return null
    headers.push([header, text])
  }
  // Not by assignment, because a header may be named __proto__.
  return { ...Object.fromEntries(headers), ...inert }
}
