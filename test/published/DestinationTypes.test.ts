import { resolve } from "node:path"
import { expect, it } from "vitest"
import { destinationTypesPage } from "./DestinationTypes.ts"

it("docs/destinations/types.md, which -u writes, is what the types and their rows say", async () => {
  const file = resolve(import.meta.dirname, "../../docs/destinations/types.md")
  await expect(await destinationTypesPage()).toMatchFileSnapshot(file)
})
