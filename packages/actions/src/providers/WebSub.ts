import { needed } from "@tidegate/connectors/Settings"
import { Result } from "effect"
import { answered } from "../Answers.ts"
import { none } from "../AuthModes.ts"
import { requestOf, Url } from "../HttpRequest.ts"
import { calling, type Provider } from "../Provider.ts"

export const websub: Provider = {
  key: "websub",
  name: "WebSub",
  description: "Tells a hub that a feed has changed.",
  icon_key: "rss",
  manifest_version: "1.0.0",
  auth: [none],
  actions: [
    calling({
      key: "publish",
      name: "Publish",
      description: "Asks a hub to fetch a feed and to notify its subscribers.",
      category: "feeds",
      version: "1.0.0",
      inputs: {
        hub_url: needed(Url, "an absolute http or https URL"),
        topic_url: needed(Url, "an absolute http or https URL")
      },
      output: { type: "object", properties: { status: { type: "integer" } }, required: ["status"] },
      primary_output: "status",
      sample: {
        inputs: { hub_url: "https://hub.example.com/", topic_url: "https://example.com/feed.xml" },
        output: { status: 204 }
      },
      rate_limit: null,
      call: ({ hub_url, topic_url }, credentials) => {
        const body = new URLSearchParams({ "hub.mode": "publish", "hub.url": topic_url }).toString()
        const headers = { "content-type": "application/x-www-form-urlencoded" }
        return requestOf({ method: "POST", url: hub_url, headers, query: null, body }, credentials, (answer) =>
          Result.map(answered(answer), ({ status }) => ({ status: status ?? 200 }))
        )
      }
    })
  ]
}
