import { Client } from "@tidegate/client/source"
import { expect, it } from "vitest"
import { apply, warningsOf } from "../src/transfer/Apply.ts"
import { kinds } from "../src/transfer/Entries.ts"
import type { Inventory } from "../src/transfer/Inventory.ts"
import { planOf } from "../src/transfer/Plan.ts"
import { parseYaml } from "../src/transfer/Yaml.ts"

const nothing = Object.assign(
  { provider_accounts: new Map() },
  Object.fromEntries(kinds.map((kind) => [kind, new Map()]))
) as unknown as Inventory

/** Creates one source at a gateway that answers so; tells how it was asked. */
const created = async (...answers: ReadonlyArray<Response | Error>): Promise<ReadonlyArray<string>> => {
  const asked: Array<string> = []
  const left = [...answers]
  const client = new Client({
    baseUrl: "http://gateway",
    key: "k",
    retries: 0,
    fetch: async ({ method }) => {
      asked.push(method)
      const answer = left.shift()!
      if (answer instanceof Error) throw answer
      return answer
    }
  })
  const plan = planOf(parseYaml(Buffer.from("version: 1\nsources:\n  - name: shop"), "f"), "f", nothing, {})
  try {
    await apply(client, plan, nothing, "f", () => undefined, new AbortController().signal)
  } catch (error) {
    asked.push((error as Error).message)
  }
  return asked
}

it("Import reads the warning messages of an answer and ignores malformed warnings", () => {
  const warnings = [{ code: "NOT_VERIFIED", message: "everybody can send", path: "config.auth" }, 1, { message: null }]
  expect(warningsOf({ id: "src_1", warnings })).toEqual(["everybody can send", ""])
  expect(warningsOf({ id: "src_1" })).toEqual([])
})

it("Import does not overwrite a resource that somebody else created in the meantime", async () => {
  const taken = Response.json({ code: "RESOURCE_ALREADY_EXISTS", message: "the name is taken" }, { status: 409 })
  expect(await created(taken)).toEqual(["POST", "f:3: source shop: the name is taken"])
})

it("Import repeats a create without an answer as an upsert by name", async () => {
  const made = () => Response.json({ id: "src_1", name: "shop", url: "http://gateway/e/src_1" })
  expect(await created(new TypeError("fetch failed"), made())).toEqual(["POST", "PUT"])
  expect(await created(made())).toEqual(["POST"])
})
