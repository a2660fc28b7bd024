import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { waitUntil } from "../support/Waiting.ts"
import { Deadly, heavy } from "./deadly.ts"

/** Work that would end the process, or does: the gateway goes on, and so does everybody else's work. */

/** As many tokens as 112 KB of Markdown may become. */
const dense = "*a* _b_ `c` [d](e) ".repeat(190).concat("\n\n").repeat(31).slice(0, 112_000)

describe("Process with a heap of 512 MB that runs workflows", () => {
  let deadly: Deadly

  const workflowOf = async (name: string, step: object) => {
    const source = await deadly.api("POST", "/sources", { name, type: "WEBHOOK" })
    const workflow = await deadly.api("POST", "/workflows", {
      name,
      source_id: source.id,
      status: "active",
      steps: [{ id: "step", kind: "action", ...step }],
      edges: [{ source_type: "trigger", target_step_id: "step" }]
    })
    return { source: source.id, workflow: workflow.id }
  }
  const runsOf = (workflow: string) =>
    deadly.gateways.query("select id, status, error_code, finished_at from workflow_runs where workflow_id = $1", [
      workflow
    ])
  const ended = async (workflow: string, count: number) => {
    await waitUntil(
      `${count} runs are at their end`,
      async () => (await runsOf(workflow)).filter(({ finished_at }) => finished_at !== null).length === count,
      { patienceMs: 400_000, everyMs: 100 }
    )
    return await runsOf(workflow)
  }

  beforeAll(async () => {
    deadly = await Deadly.start()
  })
  afterAll(() => deadly.close())

  it(
    "The process survives a hundred runs with texts that grow a hundredfold and two hundred such tests",
    { timeout: 600_000 },
    async () => {
      const markdown = { action: { provider_key: "formatter", action_key: "text.markdown_to_html" } }
      const { source, workflow } = await workflowOf("markdown", {
        ...markdown,
        invocation_inputs: { input: "{{trigger.body.text}}" }
      })
      await Promise.all(Array.from({ length: 100 }, () => deadly.post(source, { text: dense })))
      const runs = await ended(workflow, 100)
      expect(runs.filter(({ status }) => status !== "succeeded")).toEqual([])
      const body = JSON.stringify({ config: { operation: "text.markdown_to_html" }, inputs: { input: dense } })
      const headers = { authorization: "Bearer gwk_cluster_test_key", "content-type": "application/json" }
      const tested = await Promise.all(
        Array.from({ length: 200 }, () =>
          deadly.gateways.call("all", "POST", "/v1/workflow-formatter/test", { headers, body })
        )
      )
      expect(new Set(tested.map(({ status }) => status))).toEqual(new Set([200, 503]))
      expect(deadly.process.takeEnds()).toEqual([])
    }
  )

  it(
    "A run that ends the process three times fails, its neighbours complete, and it can be retried",
    { timeout: 600_000 },
    async () => {
      const { source, workflow } = await workflowOf("deadly", {
        action: { provider_key: "http", action_key: "request", version: "1.0.0" },
        invocation_inputs: { method: "POST", url: deadly.targetUrl, body: "{{trigger.body}}" }
      })
      deadly.poison = "poison"
      deadly.isHolding = true
      await Promise.all([{ heavy }, { heavy }].map((body) => deadly.post(source, body)))
      await deadly.postDeadly(source, { heavy, poison: true })
      const ends = await deadly.livesUntil("the run is set aside", async () => {
        const runs = await runsOf(workflow)
        return runs.length === 3 && runs.every(({ finished_at }) => finished_at !== null)
      })
      const runs = await runsOf(workflow)
      const results = runs.map(({ error_code, status }) => `${String(status)} ${String(error_code)}`)
      expect(results.filter((one) => one === "succeeded null")).toHaveLength(2)
      expect(results).toContain("failed PROCESS_ENDED")
      expect(ends).toBe(3)
      deadly.poison = null
      const set = runs.find(({ status }) => status === "failed")!
      await deadly.api("POST", `/workflows/${workflow}/runs/${String(set["id"])}/retry`, { step_id: "step" })
      await waitUntil("the run has succeeded", async () =>
        (await runsOf(workflow)).every(({ status }) => status === "succeeded")
      )
      expect(deadly.bodies.length).toBeGreaterThanOrEqual(6)
    }
  )
})
