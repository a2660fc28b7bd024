import { expect } from "vitest"
import { it } from "../support/it.ts"

/** Answers of workflows to senders whose request comes to another process than the one that carries the run on. */

it("Senders at an edge are answered by runs that other processes carry on", async ({ running: start }) => {
  const gateways = await start({ first: "all", second: "all", edge: "edge" } as const)
  const flows = await Promise.all(
    Array.from({ length: 4 }, async (_, n) => {
      const source = await gateways.api("first", "POST", "/sources", { name: `shop ${n}` })
      await gateways.api("first", "POST", "/workflows", {
        name: `flow ${n}`,
        source_id: source.id,
        steps: [
          {
            id: "name",
            kind: "action",
            action: { provider_key: "formatter", action_key: "text.trim" },
            invocation_inputs: { input: "{{trigger.body.name}}" }
          }
        ],
        edges: [{ source_type: "trigger", target_step_id: "name" }],
        triggers: { answer: { step_id: "name", timeout_ms: 30_000 } }
      })
      return source.id
    })
  )
  const posted = flows.flatMap((source) => Array.from({ length: 10 }, (_, n) => ({ source, n })))
  const answers = await Promise.all(
    posted.map(({ n, source }) =>
      gateways.call("edge", "POST", `/e/${source}`, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ name: ` Ada ${n} ` })
      })
    )
  )
  expect(answers).toEqual(posted.map(({ n }) => ({ status: 200, body: `{"result":"Ada ${n}"}` })))
})
