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

describe("the processes of a sandbox", () => {
  it("start with the first call: one for it, and the spare", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 1 })
    expect(sandbox.pids()).toEqual([])
    const first = bodyOf(sandbox)
    // It waits for one alone: the others would take the machine from it.
    expect(sandbox.pids().length).toBe(1)
    expect(await first).toBe("fine")
    expect(sandbox.pids().length).toBe(2)
    for (let i = 0; i < 20; i++) expect(await bodyOf(sandbox)).toBe("fine")
    expect(sandbox.pids().length).toBe(2)
  })

  it("start for code that is only checked too", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    expect(await sandbox.check("addHandler('transform', (r) => r)")).toBe(null)
    expect(sandbox.pids().length).toBe(1)
  })

  it("are as many as have work at once, and the spares, up to their number", async () => {
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

  it("end when there was nothing to do for a while, and start again with the next call", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 1, idleMs: 100 })
    for (let i = 0; i < 2; i++) {
      expect(await bodyOf(sandbox)).toBe("fine")
      const pids = sandbox.pids()
      await expect.poll(() => sandbox.pids(), patient).toEqual([])
      await areGone(pids)
    }
  })

  it("end but for those that still have work, of which none is lost", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 0, idleMs: 500 })
    await callUntil(sandbox, 6, () => sandbox.pids().length === 3)
    await callUntil(sandbox, 1, () => sandbox.pids().length === 1)
  })

  it("are waited for when they take longer to start than they are kept", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 1, idleMs: 2 })
    for (let i = 0; i < 5; i++) expect(await bodyOf(sandbox)).toBe("fine")
  })
})
