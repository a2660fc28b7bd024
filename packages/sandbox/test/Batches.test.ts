import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { callOf, handler, openSandbox } from "./openSandbox.ts"
import type { OpenSandbox } from "./openSandbox.ts"

/** One child and code that is known to be quick: what is asked for at once goes there together. */
let sandbox: OpenSandbox
beforeAll(async () => {
  sandbox = await openSandbox({ children: 1, spares: 0, firstCalls: 1 })
})
afterAll(() => sandbox[Symbol.asyncDispose]())

const code = handler(`
  console.log("call", request.body.n)
  if (request.body.n === undefined) return request
  switch (request.body.does) {
    case "throw": throw new RangeError("of " + request.body.n)
    case "reject": Promise.reject(new Error("of " + request.body.n)); return request
    case "loop": for (;;);
    case "fill": { const all = []; for (;;) all.push(new Array(100_000).fill(all.length)) }
    case "kill": new Array(5e8).fill(1)
    case "pollute": Object.prototype.polluted = request.body.n; break
    case "grow": request.body.text = "x".repeat(9_000_000); break
    case "many": request.headers = Object.fromEntries(Array.from({ length: 400 }, (_, i) => ["h" + i, "v"])); break
  }
  request.body.seen = request.body.n
  request.body.left = {}.polluted ?? null
  return request
`)
const callNumber = (n: number, does?: string) =>
  callOf(code, { request: { body: { n, ...(does === undefined ? {} : { does }) } } })

/** So that the code is decided about, and known to be quick. */
const warm = async (): Promise<void> => {
  for (let i = 0; i < 40; i++) await sandbox.run(callNumber(i))
}

const neighbours = Array.from({ length: 40 }, (_, n) => n)
/** Forty calls at once, one of which does that. */
const among = async (does: string) => {
  await warm()
  return Promise.all(neighbours.map((n) => sandbox.run(callNumber(n, n === 20 ? does : undefined))))
}

describe("Batch of calls", () => {
  it("Each call of a batch has its own result, log and time", async () => {
    await warm()
    const executions = await Promise.all(neighbours.map((n) => sandbox.run(callNumber(n))))
    for (const [n, { durationMs, error, logs, request, warnings }] of executions.entries()) {
      expect(error).toBe(null)
      expect(request?.body).toEqual({ n, seen: n, left: null })
      expect(logs).toEqual([{ type: "log", message: `call ${n}` }])
      expect(warnings).toEqual([])
      expect(durationMs).toBeGreaterThan(0)
    }
  })

  const bad: ReadonlyArray<readonly [string, object]> = [
    ["throw", { error: { code: "RUNTIME_ERROR", message: "of 20", line: 5 } }],
    ["reject", { error: { code: "RUNTIME_ERROR", message: "unhandled rejection: of 20" } }],
    ["loop", { error: { code: "TIMEOUT" } }],
    ["fill", { error: { code: "MEMORY_LIMIT" } }],
    ["kill", { warnings: ["its log lines are lost"] }],
    ["grow", { error: null }],
    ["many", { error: null }],
    ["pollute", { error: null, pinned: expect.stringContaining("polluted"), request: { body: { left: 20 } } }]
  ]
  it.each(bad)("A bad call does not affect the other calls of its batch (%s)", async (does, expected) => {
    const executions = await among(does)
    expect(executions[20]).toMatchObject(expected)
    for (const n of neighbours) {
      if (n === 20) continue
      expect(executions[n]).toMatchObject({ error: null, request: { body: { n, seen: n, left: null } } })
      expect(executions[n]?.logs).toEqual([{ type: "log", message: `call ${n}` }])
    }
  })

  it("Concurrent calls of different codes and teams each get their own result", async () => {
    await warm()
    const other = (n: number) =>
      callOf(handler(`return { body: [request.body.n, "other"] }`), { request: { body: { n } } })
    const all = await Promise.all(
      neighbours.flatMap((n) => [
        sandbox.run(callNumber(n)),
        sandbox.run(other(n)),
        sandbox.run({ ...other(n), teamId: "tm_b" })
      ])
    )
    expect(all.map(({ request }) => request?.body)).toEqual(
      neighbours.flatMap((n) => [{ n, seen: n, left: null }, [n, "other"], [n, "other"]])
    )
  })
})

describe("Code with fresh isolation", () => {
  it("Code with fresh isolation gets a new context for each call and is never pinned", async () => {
    const changing = handler("Array.prototype.left = (Array.prototype.left ?? 0) + 1; return { body: [].left }")
    for (let i = 0; i < 3; i++) {
      const { pinned, request } = await sandbox.run(callOf(changing, { isolation: "fresh" }))
      expect([request?.body, pinned]).toEqual([1, null])
    }
  })
})
