import { describe, expect, it } from "@effect/vitest"
import { callOf, handler, openSandbox, type OpenSandbox } from "./openSandbox.ts"
import { areGone } from "./processes.ts"

const fine = callOf(handler("return { body: 'fine' }"))
const bodyOf = (sandbox: OpenSandbox) => sandbox.run(fine).then(({ request }) => request?.body)

/**
 * Teams that call until that holds, several at once. What a call costs is far from what makes its code count as slow, on a busy machine too: slow code
 * shares fewer processes.
 */
const callUntil = async (sandbox: OpenSandbox, teams: number, holds: () => boolean): Promise<void> => {
  const code = handler("const end = Date.now() + 2; while (Date.now() < end); return { body: 'done' }")
  const lane = async (_: unknown, team: number): Promise<void> => {
    while (!holds())
      expect((await sandbox.run(callOf(code, { teamId: `tm_${team}`, isolation: "fresh" }))).request?.body).toBe("done")
  }
  await Promise.all(Array.from({ length: teams }, lane))
}
const patient = { timeout: 60_000, interval: 10 }

describe("Processes of a sandbox", () => {
  it("The first call starts one process and then the spare", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 1 })
    expect(sandbox.pids()).toEqual([])
    const first = bodyOf(sandbox)
    const { length } = sandbox.pids()
    expect(await first).toBe("fine")
    // It waits for one alone: the others would take the machine from it.
    expect(length).toBe(1)
    expect(sandbox.pids().length).toBe(2)
    for (let i = 0; i < 20; i++) expect(await bodyOf(sandbox)).toBe("fine")
    expect(sandbox.pids().length).toBe(2)
  })

  it("A syntax check starts a process as well", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    expect(await sandbox.check("addHandler('transform', (r) => r)")).toBe(null)
    expect(sandbox.pids().length).toBe(1)
  })

  it("The sandbox starts as many processes as work needs, plus spares, up to the maximum", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 1 })
    await callUntil(sandbox, 9, () => sandbox.pids().length === 4)
    let most = 0
    let calls = 0
    await callUntil(sandbox, 9, () => {
      most = Math.max(most, sandbox.pids().length)
      return ++calls > 40
    })
    expect(most).toBe(4)
  })

  it("Idle processes end after a while, and the next call starts them again", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 1, idleMs: 100 })
    for (let i = 0; i < 2; i++) {
      expect(await bodyOf(sandbox)).toBe("fine")
      const pids = sandbox.pids()
      await expect.poll(() => sandbox.pids(), patient).toEqual([])
      await areGone(pids)
    }
  })

  it("Processes without work end while others still work, and no call is lost", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 0, idleMs: 500 })
    await callUntil(sandbox, 6, () => sandbox.pids().length === 3)
    await callUntil(sandbox, 1, () => sandbox.pids().length === 1)
  })

  it("A process that starts more slowly than the idle time is still waited for", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 1, idleMs: 2 })
    for (let i = 0; i < 5; i++) expect(await bodyOf(sandbox)).toBe("fine")
  })
})
