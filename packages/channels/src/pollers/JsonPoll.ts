import { valueAt } from "@tidegate/interpolation/Template"
import { compareNumbers, isJsonNumber } from "@tidegate/json/ExactNumber"
import { parsePath, type PathSegment } from "@tidegate/json/JsonPath"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { Effect, type Schema } from "effect"
import { hash } from "node:crypto"
import { answered, invalid, jsonOf, maxPageBytes } from "../adapters/Answers.ts"
import { memberOf, textOf } from "../Foreign.ts"
import { itemId, itemOf, maxItems } from "../Items.ts"
import { unchangedSince, validatorsOf } from "./Conditional.ts"
import { type Listed, listPoller } from "./Listing.ts"

/**
 * Polls a list that an endpoint gives as JSON. The inputs say where the list and its items' ids are. With `since_parameter` a request
 * asks for what is not older than the newest item of before, by the value at `since_path`, as the provider wrote it.
 */
export const jsonPoll = listPoller("json_poll", false, (context, state) =>
  Effect.gen(function* () {
    const { inputs } = context
    const what = "reading the list"
    const parameter = textOf(inputs, "since_parameter")
    const before = memberOf(state, "since") ?? null
    const url = withParameter(textOf(inputs, "url") ?? "", parameter, before)
    const answer = yield* answered(
      context,
      {
        method: "GET",
        url,
        headers: { accept: "application/json", ...unchangedSince(state, url) },
        authorized: false,
        maxAnswerBytes: maxPageBytes
      },
      what,
      [304]
    )
    if (answer.status === 304) return "unchanged"
    const list = itemsIn(yield* jsonOf(answer, what), textOf(inputs, "items_path"))
    if (!Array.isArray(list)) return yield* invalid(`${what}: the answer has no list there`, answer.status)
    const values: ReadonlyArray<unknown> = list.slice(0, maxItems)
    const [idPath, sincePath] = [pathOf(inputs, "id_path"), pathOf(inputs, "since_path")]
    const since =
      parameter === null ? null : values.reduce((newest, value) => newerOf(newest, valueAt(value, sincePath)), before)
    const entries = yield* inSlices(listing(values, idPath))
    return { entries, state: { ...validatorsOf(answer, url), since: since as Schema.Json } }
  })
)

/** In steps: an item without an id is written to find out what identifies it. */
function* listing(values: ReadonlyArray<unknown>, idPath: Path): Resumable<ReadonlyArray<Listed>> {
  const entries: Array<Listed> = []
  for (const value of values) {
    const id = yield* identifying(value, idPath)
    entries.push({ id, item: () => itemOf(id, value, null) })
    yield
  }
  return entries
}

type Path = ReadonlyArray<PathSegment>

const pathOf = (inputs: Schema.JsonObject, name: string): Path => parsePath(textOf(inputs, name) ?? "") ?? []

/** The list in an answer: at the given place, otherwise the whole answer or its `items`. */
const itemsIn = (body: unknown, path: string | null): unknown => {
  if (path !== null) return valueAt(body, parsePath(path) ?? [])
  return Array.isArray(body) ? body : memberOf(body, "items")
}

/** An item without an id is identified by what it is. Writing a large one and hashing it are two steps. */
function* identifying(value: unknown, path: Path): Resumable<string> {
  const id = valueAt(value, path)
  if (typeof id === "string" || isJsonNumber(id)) return itemId("item", String(id))
  const text = JSON.stringify(value)
  yield
  return itemId("item", `sha256:${hash("sha256", text)}`)
}

const longestSince = 256

/** The later of two values: numbers by their size, texts by their characters, which orders dates of RFC 3339. */
const newerOf = (newest: unknown, value: unknown): unknown => {
  if (typeof value === "string" ? value.length > longestSince || value === "" : !isJsonNumber(value)) return newest
  if (isJsonNumber(newest) && isJsonNumber(value)) return compareNumbers(value, newest) > 0 ? value : newest
  if (typeof newest === "string" && typeof value === "string") return value > newest ? value : newest
  return value
}

const withParameter = (url: string, name: string | null, value: unknown): string => {
  const parsed = name === null || value === null ? null : URL.parse(url)
  if (parsed === null || name === null) return url
  parsed.searchParams.set(name, String(value))
  return parsed.href
}
