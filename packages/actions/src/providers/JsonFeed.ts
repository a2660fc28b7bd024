import { needed, setting, text } from "@tidegate/connectors/Settings"
import { parsePath } from "@tidegate/json/JsonPath"
import type { Json } from "@tidegate/model/Rule"
import { valueAt } from "@tidegate/interpolation/Template"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result, Schema } from "effect"
import { answered } from "../Answers.ts"
import { httpModes } from "../AuthModes.ts"
import { requestInputs, requestOf, sentToOrigin, Url } from "../HttpRequest.ts"
import { calling, type Provider } from "../Provider.ts"

const Path = text.check(
  Schema.makeFilter(
    (path: string) =>
      parsePath(path)?.every(({ kind }) => kind === "key" || kind === "index") === true ||
      "must be a path like data.items"
  )
)

const wholeNumber = "must be a whole number from 1 to 100"

/** The list in an answer: at the given place, otherwise the whole answer or its `items`. */
const itemsIn = (body: Json, path: string | null): unknown => {
  if (path !== null) return valueAt(body, parsePath(path) ?? [])
  return Array.isArray(body) ? body : valueAt(body, [{ kind: "key", key: "items" }])
}

const noList: StepError = { code: "ACTION_FAILED", message: "the answer has no list of items there" }

export const jsonFeed: Provider = {
  key: "json_feed",
  name: "JSON feed",
  description: "Reads lists that an endpoint gives as JSON.",
  icon_key: "list",
  manifest_version: "1.0.0",
  auth: httpModes,
  actions: [
    calling({
      key: "fetch",
      name: "Fetch items",
      description: "Gets a feed of at most 1 MiB, and gives its first items in their order.",
      category: "core",
      version: "1.0.0",
      inputs: {
        url: needed(Url, "an absolute http or https URL"),
        ...requestInputs,
        items_path: setting(
          Path.annotate({
            description: "Where in the answer the list is, like data.items; left out: the whole, or its `items`"
          }),
          null
        ),
        limit: setting(
          Schema.Number.annotate({ description: "How many items at most", message: wholeNumber }).check(
            Schema.isInt({ message: wholeNumber }).abort(),
            Schema.isBetween({ minimum: 1, maximum: 100 }, { message: wholeNumber })
          ),
          50,
          wholeNumber
        )
      },
      output: {
        type: "object",
        properties: {
          items: { type: "array" },
          count: { type: "integer" },
          total: { type: "integer", description: "How many the feed has" }
        },
        required: ["items", "count", "total"]
      },
      primary_output: "items",
      sample: {
        inputs: { url: "https://api.example.com/feed.json", limit: 10 },
        output: { items: [{ id: "1", title: "First" }], count: 1, total: 1 }
      },
      rate_limit: null,
      sentTo: sentToOrigin,
      call: ({ items_path, limit, ...request }, credentials) =>
        requestOf({ ...request, method: "GET", body: null }, credentials, (answer) =>
          Result.flatMap(answered(answer), ({ body }) => {
            const items = itemsIn(body, items_path)
            if (!Array.isArray(items)) return Result.fail(noList)
            const first = items.slice(0, limit ?? 50) as ReadonlyArray<Json>
            return Result.succeed({ items: [...first], count: first.length, total: items.length })
          })
        )
    })
  ]
}
