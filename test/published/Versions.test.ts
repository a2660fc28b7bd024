import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { expect, it } from "vitest"
import { type Deprecated, deprecated } from "../../packages/api/src/contract/Deprecation.ts"
import { formatted, table } from "./Markdown.ts"

const file = join(resolve(import.meta.dirname, "../../docs"), "versions.md")
const heading = "## Deprecated today\n\n"

const listOf = (rows: ReadonlyArray<Deprecated>): string =>
  rows.length === 0
    ? "Nothing is deprecated today, so no answer has these headers."
    : table(
        ["What", "Since", "May be gone from", "Instead"],
        rows.map(({ instead, link, since, sunset, what }) => [
          "operation" in what ? `\`${what.operation}\`` : `\`${what.member}\` of \`${what.component}\``,
          since,
          sunset,
          `[${instead}](${link})`
        ])
      )

it("The list of what is deprecated in docs/versions.md, which -u writes, is the declared one", async () => {
  const [before, ...more] = readFileSync(file, "utf8").split(heading)
  expect(more).toHaveLength(1)
  await expect(await formatted("versions.md", `${before}${heading}${listOf(deprecated)}\n`)).toMatchFileSnapshot(file)
})

it("The list of what is deprecated names an operation or a member, its days, and what to use instead", () => {
  const dates = { since: "2027-01-31", sunset: "2027-11-30", instead: "use `getSource`", link: "sources.md" }
  const rows: ReadonlyArray<Deprecated> = [
    { what: { operation: "listSources" }, ...dates },
    { what: { component: "Source", member: "slug" }, ...dates }
  ]
  expect(listOf(rows).split("\n").slice(2)).toEqual([
    "| `listSources` | 2027-01-31 | 2027-11-30 | [use `getSource`](sources.md) |",
    "| `slug` of `Source` | 2027-01-31 | 2027-11-30 | [use `getSource`](sources.md) |"
  ])
})
