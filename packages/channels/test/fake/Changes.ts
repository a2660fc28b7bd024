import { type FakeTrigger, iso, sha1, wholeSeconds } from "./Service.ts"

/** The target of a change where a test names none: what the samples of the triggers watch. */
export const usualTargets: Readonly<Record<FakeTrigger, string>> = {
  "entry.added": "news.atom",
  "item.added": "orders",
  "calendar.event.changed": "primary",
  "drive.changed": "changes",
  "message.created": "inbox",
  "drive_item.changed": "root",
  "stream.online": "1337",
  "channel.follow": "1337",
  push: "acme/shop",
  "issue.changed": "acme/shop",
  "release.published": "acme/shop"
}

/** The id of the item that a source makes of a change, and what the provider shows of it. */
export const valueOf = (
  origin: string,
  trigger: FakeTrigger,
  target: string,
  number: number,
  at: number,
  more: Readonly<Record<string, unknown>>
): readonly [item: string, value: Readonly<Record<string, unknown>>] => {
  const seconds = Math.floor(at / 1_000)
  switch (trigger) {
    case "entry.added": {
      const id = `tag:provider.test,2026:${number}`
      const url = `${origin}/posts/${number}`
      return [`entry:${id}`, { id, url, title: `Post ${number} & more`, content: `<p>Text ${number}</p>` }]
    }
    case "item.added":
      return [`item:${number}`, { id: number, total: `${number}.00`, created_at: iso(at) }]
    case "calendar.event.changed": {
      const id = `event${number}`
      const value = { kind: "calendar#event", id, status: "confirmed", updated: iso(at), summary: `Event ${number}` }
      return [`event:${target}:${id}:${iso(at)}`, value]
    }
    case "drive.changed": {
      const file = { id: `file${number}`, name: `File ${number}`, version: String(number), modifiedTime: iso(at) }
      const value = {
        kind: "drive#change",
        changeType: "file",
        time: iso(at),
        removed: false,
        fileId: file.id,
        file: { kind: "drive#file", ...file }
      }
      return [`file:${file.id}:${number}`, value]
    }
    case "message.created": {
      const id = `AAMk${number}=`
      return [`message:${id}`, { id, subject: `Message ${number}`, receivedDateTime: iso(at) }]
    }
    case "drive_item.changed": {
      const [id, eTag] = [`01ITEM${number}`, `"{${number}},1"`]
      const value = { id, eTag, name: `Item ${number}.txt`, lastModifiedDateTime: iso(at), file: {} }
      return [`drive_item:${id}:${eTag}`, value]
    }
    case "stream.online": {
      const id = String(9_000 + number)
      return [`stream:${id}`, { id, type: "live", started_at: wholeSeconds(at) }]
    }
    case "channel.follow": {
      const user = String(5_000 + number)
      return [
        `follow:${target}:${user}:${seconds}`,
        { user_id: user, user_login: `user${number}`, user_name: `User${number}`, followed_at: wholeSeconds(at) }
      ]
    }
    case "push": {
      const [branch, sha] = [(more["branch"] as string | undefined) ?? "main", sha1(String(number))]
      return [`push:refs/heads/${branch}:${sha}`, { branch, sha }]
    }
    case "issue.changed": {
      const value = {
        id: 30_000 + number,
        number,
        title: `Issue ${number}`,
        state: "open",
        updated_at: wholeSeconds(at),
        html_url: `${origin}/${target}/issues/${number}`
      }
      return [`issue:${value.id}:${seconds}`, value]
    }
    default: {
      const value = {
        id: 40_000 + number,
        tag_name: `v${number}`,
        name: `Release ${number}`,
        draft: false,
        prerelease: false,
        published_at: wholeSeconds(at),
        html_url: `${origin}/${target}/releases/v${number}`
      }
      return [`release:${value.id}`, value]
    }
  }
}
