import { join, resolve } from "node:path"
import { Schema } from "effect"
import { expect, it } from "vitest"
import { maxPerMinute, SystemEventBody, systemEvents } from "../../packages/model/src/SystemEvents.ts"
import { fence, page, table } from "./Markdown.ts"

/** `docs/system-event-types.md` is generated from the table of system events; `npm test -- test/published -u` writes it. */

const code = (text: string): string => `\`${text}\``

const windowOf = (ms: number): string =>
  ms === 0 ? "as it happens" : ms === 60_000 ? "1 minute" : `${ms / 60_000} minutes`

it("The page docs/system-event-types.md, which -u writes, matches the table of system events", async () => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(SystemEventBody)
  const text = await page([
    "# Types of system events",
    "[Issues and system events](system-events.md) explains how a team gets them. This page is generated from the table of types.",
    table(
      ["`type`", "When it is sent", "Subject", "`sample_ids`", "At most once in"],
      systemEvents.map(({ samples, subject, type, when, windowMs }) => [
        code(type),
        when,
        subject,
        samples,
        windowOf(windowMs)
      ])
    ),
    `A team gets at most ${maxPerMinute} events in a minute; the others wait.`,
    "## Body",
    "The JSON Schema of the body, the same for all types:",
    fence("json", JSON.stringify({ ...schema, $defs: definitions }, null, 2))
  ])
  await expect(text).toMatchFileSnapshot(join(resolve(import.meta.dirname, "../../docs"), "system-event-types.md"))
})
