import { expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { it } from "../support/it.ts"

/** Calls with an idempotency key that come to several processes. */

type Processes = Gateways<"all" | "edge">

const running = { all: "all", edge: "edge" } as const

it("An idempotent call that reaches two processes at once is executed once, and both answer the same", async ({
  running: start
}) => {
  const gateways: Processes = await start(running)
  const { body: login } = await gateways.call("all", "POST", "/v1/auth/demo/login")
  const { token } = JSON.parse(login) as { token: string }
  // A rotation answers another secret each time that it is carried out.
  const made = async (by: keyof typeof running, key: string) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": key }
    const body = JSON.stringify({ rotate: ["signing_secret"] })
    const answer = await gateways.call(by, "POST", "/v1/project-secrets/rotate", { headers, body })
    return { status: answer.status, body: answer.body }
  }
  for (let round = 0; round < 5; round++) {
    const key = `round-${round}`
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => made(n % 2 === 0 ? "all" : "edge", key)))
    const done = answers.filter(({ status }) => status === 200)
    expect(done.length).toBeGreaterThanOrEqual(1)
    expect(new Set(done.map(({ body }) => body)).size).toBe(1)
    for (const { body, status } of answers.filter(({ status }) => status !== 200)) {
      expect([status, (JSON.parse(body) as { code: string }).code]).toEqual([409, "IDEMPOTENCY_KEY_IN_USE"])
    }
    for (const by of ["all", "edge"] as const) expect(await made(by, key)).toEqual({ status: 200, body: done[0]!.body })
  }
})
