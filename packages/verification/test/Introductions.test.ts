import { expect, it } from "vitest"
import { introductions } from "@tidegate/verification/introductions/Introductions"
import { providers } from "@tidegate/verification/Providers"

/** What people read about a source type. */

const types = providers.flatMap((provider) => provider.types.map((type) => [type, provider] as const))

it("Each introduction belongs to a type of the provider table, and has a name of its own", () => {
  expect(Object.keys(introductions).toSorted()).toEqual(types.map(([type]) => type).toSorted())
  const names = Object.values(introductions).map(({ name }) => name)
  expect(names).toEqual([...new Set(names)])
})

it.each(types)(
  "The introduction of %s says where the URL goes and names each setting that is required",
  (type, { settings }) => {
    const { description, documentation, setup } = introductions[type]
    const text = setup.join(" ")
    expect(text).toMatch(/URL/)
    for (const { name, required } of settings) if (required) expect(text).toContain(`\`${name}\``)
    expect(description).toMatch(/^[A-Z].*\.$/)
    expect(documentation).toMatch(/^https:\/\//)
    for (const step of setup) expect(step).toMatch(/^[A-Z`].*\.$/)
  }
)
