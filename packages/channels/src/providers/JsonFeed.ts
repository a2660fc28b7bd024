import { HttpUrl, needed, setting, text } from "@tidegate/connectors/Settings"
import { parsePath } from "@tidegate/json/JsonPath"
import { Schema } from "effect"
import { jsonPoll } from "../pollers/JsonPoll.ts"
import type { SourceProvider } from "../SourceProvider.ts"

const Path = text.check(
  Schema.makeFilter(
    (path: string) =>
      parsePath(path)?.every(({ kind }) => kind === "key" || kind === "index") === true ||
      "must be a path like data.items"
  )
)

const Parameter = text.check(
  Schema.isPattern(/^[\w.[\]$-]{1,64}$/, { message: "must be the name of a query parameter" })
)

export const jsonFeed: SourceProvider = {
  key: "json_feed",
  name: "JSON list",
  description: "New items of a list that an endpoint gives as JSON, by polling.",
  icon_key: "list",
  manifest_version: "1.0.0",
  account: null,
  triggers: [
    {
      key: "item.added",
      name: "Item added",
      description: "The list has an item that it did not have before. The first 1,000 items of the list count.",
      category: "core",
      version: "1.0.0",
      requiredScopes: [],
      inputs: {
        url: needed(
          HttpUrl(2_048).annotate({ description: "The address of the list" }),
          "an absolute http or https URL"
        ),
        items_path: setting(
          Path.annotate({
            description: "Where in the answer the list is, like data.items; left out: the whole, or its `items`"
          }),
          null
        ),
        id_path: setting(
          Path.annotate({ description: "Where in an item its id is. An item without one is identified by what it is" }),
          "id"
        ),
        since_parameter: setting(
          Parameter.annotate({
            description: "The query parameter that asks for newer items; it gets the largest value at `since_path`"
          }),
          null
        ),
        since_path: setting(
          Path.annotate({ description: "Where in an item its time or growing number is" }),
          "created_at"
        )
      },
      output: { description: "The item as the endpoint gives it" },
      primaryOutput: null,
      sample: {
        inputs: { url: "https://api.example.com/orders", items_path: "data.items" },
        output: { id: 1, total: "12.00" }
      },
      adapter: null,
      poller: jsonPoll
    }
  ]
}
