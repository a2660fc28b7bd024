import { join, resolve } from "node:path"
import { expect, it } from "vitest"
import { sourceTypes } from "../../packages/resources/src/source/SourceTypeCatalog.ts"
import { providerOf } from "../../packages/verification/src/Providers.ts"
import { page } from "./Markdown.ts"

/** `docs/provider-setup.md` is generated from the introductions of the source types; `npm test -- test/published -u` writes it. */

it("The page docs/provider-setup.md, which -u writes, has the set-up steps of each provider", async () => {
  const sections = sourceTypes
    .filter(({ type }) => providerOf(type) !== undefined)
    .flatMap(({ description, documentation_url, name, setup, type }) => [
      `## ${name}`,
      `Type \`${type}\`. ${description} The provider's own guide: <${documentation_url}>.`,
      setup.map((step, index) => `${index + 1}. ${step}`).join("\n")
    ])
  const text = await page([
    "# Set up each provider",
    `Create the [source](sources.md) first: its page in the dashboard shows the URL to copy, the same steps, and a button that sends a
test request. [Providers](providers.md) says how each type verifies. Providers change their menus; if a step differs from what you see,
look at the provider's own guide. This page is generated from the source types.`,
    ...sections
  ])
  await expect(text).toMatchFileSnapshot(join(resolve(import.meta.dirname, "../../docs"), "provider-setup.md"))
})
