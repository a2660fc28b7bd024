import { describe, expect } from "vitest"
import { stepKinds } from "@tidegate/workflows/StepKinds"
import { hasBrowser, heading, it as pageIt, turnTo, violations } from "../support/DashboardPage.ts"
import { patience } from "../support/Waiting.ts"

const it = pageIt.extend("workflow", async ({ gateway }) => {
  const source = await gateway.source()
  return gateway.api("POST", "/workflows", {
    name: gateway.name("edited"),
    source_id: source.id,
    status: "draft",
    steps: [{ id: "large", kind: "filter", config: { conditions: { body: { total: { $gt: 10 } } } } }],
    edges: [{ source_type: "trigger", target_step_id: "large" }]
  })
})

describe.skipIf(!hasBrowser)("Editor of workflows in the dashboard", () => {
  it("The editor offers every kind of step that the gateway has", async ({ page, workflow }) => {
    await turnTo(page, `workflows/${workflow.id}/edit`)
    await heading(page, `Edit ${workflow.name}`).waitFor()
    const offered = await page.getByLabel("New step").locator("option").allInnerTexts()
    expect(offered.toSorted()).toEqual(stepKinds.map(({ kind }) => kind).toSorted())
  })

  it("Faults stand at their steps before anything is saved, and are gone when the steps are mended", async ({
    gateway,
    page,
    workflow
  }) => {
    await turnTo(page, `workflows/${workflow.id}/edit`)
    const check = page.getByRole("status", { name: "Check of the steps" })
    await check.getByText("No faults.").waitFor()
    await page.getByRole("button", { name: /^large, filter/ }).press("Enter")
    await page.getByLabel("New step").selectOption("destination")
    await page.getByRole("button", { name: "Add it after the selected one" }).click()
    await check.getByText(/^\d+ faults?: a save would be refused\.$/).waitFor()
    const step = page.locator("section").filter({ has: page.getByRole("heading", { name: "Step destination_2" }) })
    await step.locator(".notice.bad").first().waitFor()
    // Of another step it is in the list, and leads to its step.
    await page.getByLabel("Selected step").selectOption("large")
    const faults = page.getByRole("list", { name: "Faults of the steps" })
    await faults.getByRole("button", { name: "destination_2" }).first().click()
    await faults.waitFor({ state: "detached" })
    expect(await violations(page)).toEqual([])
    const { id, name } = await gateway.destination({ url: "https://api.example.com" })
    await page.reload()
    await page.getByRole("button", { name: /^large, filter/ }).press("Enter")
    await page.getByLabel("New step").selectOption("destination")
    await page.getByRole("button", { name: "Add it after the selected one" }).click()
    await page.getByLabel("destination", { exact: true }).selectOption({ label: name })
    await check.getByText("No faults.").waitFor()
    expect(await gateway.api("GET", `/workflows/${workflow.id}`)).toMatchObject({
      version: 1,
      steps: [{ id: "large" }]
    })
    expect((await gateway.call("GET", `/workflows/${workflow.id}/draft`)).status).toBe(404)
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Saved as version 2").waitFor()
    expect(await gateway.api("GET", `/workflows/${workflow.id}`)).toMatchObject({ steps: [{}, { resource_id: id }] })
  })

  it("The ports, the inputs and the resource of a step are those that the API has for its kind and its settings", async ({
    page,
    workflow
  }) => {
    await turnTo(page, `workflows/${workflow.id}/edit`)
    const add = async (kind: string) => {
      await page.getByLabel("Selected step").selectOption("large")
      await page.getByLabel("New step").selectOption(kind)
      await page.getByRole("button", { name: "Add it after the selected one" }).click()
    }
    /** The ports that are offered if there are several, and whether the step takes inputs. */
    const offers = (ports: ReadonlyArray<string>, takesInputs: boolean) =>
      expect
        .poll(
          async () => [
            await page.getByLabel("Port").locator("option").allInnerTexts(),
            (await page.getByLabel("invocation_inputs").count()) > 0
          ],
          { timeout: patience }
        )
        .toEqual([ports, takesInputs])
    await add("store")
    await page.getByLabel(/^operation/).selectOption("compare_and_set")
    await offers(["out", "conflict"], true)
    await page.getByLabel(/^operation/).selectOption("get")
    await offers([], true)
    await add("wait")
    await page.getByLabel(/^for /).selectOption("approval")
    await offers(["out", "rejected", "timed_out"], true)
    await page.getByLabel(/^for /).selectOption("event")
    await offers(["out", "timed_out"], true)
    await page.getByLabel("source", { exact: true }).waitFor()
    await add("branch")
    await page.getByLabel(/^paths/).fill('[{ "key": "eu", "rule": "always" }, { "key": "rest", "rule": "fallback" }]')
    await offers(["path_eu", "path_rest"], false)
    await add("transformation")
    await page.getByLabel("on_error").selectOption("branch")
    await offers(["out", "error"], true)
  })

  it("A step that stores a value is added with its key, and its inputs stay when its name is changed", async ({
    gateway,
    page,
    workflow
  }) => {
    await turnTo(page, `workflows/${workflow.id}/edit`)
    await page.getByRole("button", { name: /^large, filter/ }).press("Enter")
    await page.getByLabel("New step").selectOption("store")
    await page.getByRole("button", { name: "Add it after the selected one" }).click()
    await page.getByLabel(/^operation/).selectOption("increment")
    await page.getByLabel("invocation_inputs").fill('{ "key": "orders" }')
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Saved as version 2").waitFor()
    await page.getByLabel("Name", { exact: true }).fill("Count it")
    await page.getByRole("button", { name: "Save", exact: true }).click()
    await page.getByText("Saved as version 3").waitFor()
    expect(await gateway.api("GET", `/workflows/${workflow.id}`)).toMatchObject({
      steps: [
        { id: "large" },
        { kind: "store", name: "Count it", config: { operation: "increment" }, invocation_inputs: { key: "orders" } }
      ]
    })
  })
})
