import { resolve } from "node:path"
import { expect, it } from "vitest"
import { destinationTypesPage } from "./DestinationTypes.ts"

it("The page docs/destinations/types.md, which -u writes, matches the destination types", async () => {
  const file = resolve(import.meta.dirname, "../../docs/destinations/types.md")
  await expect(await destinationTypesPage()).toMatchFileSnapshot(file)
})
