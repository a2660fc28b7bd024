import { describe, expect } from "vitest"
import { stepKinds } from "@tidegate/workflows/StepKinds"
import { hasBrowser, heading, it as pageIt, turnTo } from "../support/DashboardPage.ts"

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
