import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"
import { Target } from "../support/Target.ts"
import { waitUntil } from "../support/Waiting.ts"
import { maxInWindow } from "./RateRun.ts"

/** A saved action with a limit, which runs of several processes call. */

const limit = 10
/** Of as many workflows as that both processes have some. */
const workflows = 8

const calling = async (gateways: Gateways<"a" | "b">, origin: string) => {
  const { id: action } = await gateways.api("a", "POST", "/actions", {
    name: "limited",
    provider_key: "http",
    action_key: "request",
    inputs: { url: `${origin}/called`, method: "POST" },
    rate_limit: limit,
    rate_limit_period: "second"
  })
  const { id: source } = await gateways.api("a", "POST", "/sources", { name: "orders" })
  for (let n = 0; n < workflows; n++) {
    await gateways.api(n % 2 === 0 ? "a" : "b", "POST", "/workflows", {
      name: `flow-${n}`,
      source_id: source,
      steps: [{ id: "call", kind: "action", resource_id: action, invocation_inputs: { body: "{{trigger.body}}" } }],
      edges: [{ source_type: "trigger", target_step_id: "call" }]
    })
  }
  return async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      const answer = await gateways.call(n % 2 === 0 ? "a" : "b", "POST", `/e/${source}`, {
        headers: { "content-type": "application/json" },
        body: "{}"
      })
      expect(answer.status, answer.body).toBe(200)
    }
  }
}

/** On a busy machine calls are held up, and then several arrive together: a window is much longer than that. */
const windowMs = 3_000
/** With a limit for each process it would be twice the limit. */
const maxCalls = (1.5 * limit * windowMs) / 1_000

const keysOf = ({ received }: Target): ReadonlySet<unknown> =>
  new Set(received.map(({ headers }) => headers["idempotency-key"]))

describe("Rate limit of a saved action", () => {
  it("A saved action's rate limit holds for all processes together, also when one is killed", async ({
    onTestFinished,
    running
  }) => {
    const gateways: Gateways<"a" | "b"> = await running({ a: "all", b: "all" })
    const target = await Target.start()
    onTestFinished(() => target.close())
    const send = await calling(gateways, target.origin)
    await send(8)
    const arrived = (count: number) =>
      waitUntil(`${count} calls`, () => keysOf(target).size >= count, { seen: () => keysOf(target).size })
    await arrived(8 * workflows)
    const first = target.received.map(({ at }) => at)
    const from = new Set(["a", "b"].filter((name) => target.from(gateways.process(name as "a").pid!).length > 0))
    expect(from).toEqual(new Set(["a", "b"]))
    // Some come later than others: with a limit for each process it would be half of that, and twice as many.
    expect(first.at(-1)! - first[0]!).toBeGreaterThan(((8 * workflows) / limit - 2) * 1_000)
    expect(maxInWindow(first, windowMs)).toBeLessThan(maxCalls)
    await send(8)
    await arrived(10 * workflows)
    await gateways.process("b").end("SIGKILL")
    await arrived(16 * workflows)
    expect(
      maxInWindow(
        target.received.map(({ at }) => at),
        windowMs
      )
    ).toBeLessThan(maxCalls)
  })
})
