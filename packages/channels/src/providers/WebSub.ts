import { HttpUrl, needed, setting } from "@tidegate/connectors/Settings"
import { Schema } from "effect"
import { webSub as adapter } from "../adapters/WebSub.ts"
import { feedPoll } from "../pollers/FeedPoll.ts"
import type { SourceProvider } from "../SourceProvider.ts"
import { aText, maybeText, shape } from "./Inputs.ts"

export const webSub: SourceProvider = {
  key: "websub",
  name: "Feeds",
  description: "New entries of RSS, Atom and JSON feeds: at once if the feed names a WebSub hub, otherwise by polling.",
  icon_key: "rss",
  manifest_version: "1.0.0",
  account: null,
  triggers: [
    {
      key: "entry.added",
      name: "Entry added",
      description: "A feed has an entry that it did not have before. The first 1,000 entries of the feed count.",
      category: "content",
      version: "1.0.0",
      requiredScopes: [],
      inputs: {
        url: needed(
          HttpUrl(2_048).annotate({ description: "The address of the feed" }),
          "the absolute http or https URL of a feed"
        ),
        require_sha256: setting(
          Schema.Boolean.annotate({ description: "Whether notifications that a hub signs with SHA-1 are refused" }),
          false,
          "must be true or false"
        )
      },
      output: shape({
        id: maybeText("The entry's id, otherwise its link"),
        url: maybeText("The entry's page"),
        title: maybeText("As the feed has it; it may contain HTML"),
        summary: maybeText("The summary or description"),
        content: maybeText("The content, usually HTML"),
        author: maybeText("The first author's name"),
        published_at: maybeText("RFC 3339, or the feed's own text if that is no date"),
        updated_at: maybeText("The same for the last change"),
        categories: { type: "array", items: { type: "string" } },
        attachments: {
          type: "array",
          items: shape({ url: aText("The file"), type: maybeText("Its media type"), length: maybeText("Its bytes") })
        },
        feed: shape({ title: maybeText("The feed's title"), url: maybeText("The feed's page") })
      }),
      primaryOutput: "url",
      sample: {
        inputs: { url: "https://example.com/feed.atom" },
        output: {
          id: "tag:example.com,2026:1",
          url: "https://example.com/posts/1",
          title: "First post",
          summary: null,
          content: "<p>Hello</p>",
          author: "Ada",
          published_at: "2026-01-01T00:00:00.000Z",
          updated_at: null,
          categories: ["news"],
          attachments: [],
          feed: { title: "Example", url: "https://example.com/" }
        }
      },
      adapter,
      poller: feedPoll
    }
  ]
}
