import { describe, expect, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { getPriority } from "node:os"
import { createInterface } from "node:readline"
import { setImmediate as inLaterTurn } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { bodyLimits } from "@tidegate/json/JsonText"
import { callOf, handler, openSandbox, type OpenSandbox } from "./openSandbox.ts"
import { areGone, isAlive, mayRaisePriority } from "./processes.ts"

const loop = (name: string) => handler(`for (;;); /* ${name} */`)
const fine = callOf(handler("return { body: 'fine' }"))
/** It cannot be stopped from inside: only its child's end ends it. */
const monster = handler("new Array(5e8).fill(1)")

/** Calls until a quick one is over before a slow one that came first: then it had a child of its own. */
const untilTwoWork = async (sandbox: OpenSandbox): Promise<void> => {
  const slow = callOf(handler("const end = Date.now() + 100; while (Date.now() < end); return {}"), { teamId: "slow" })
  for (let first = ""; first !== "quick";) {
    const running = sandbox.run(slow).then(() => "slow")
    first = await Promise.race([running, sandbox.run(fine).then(() => "quick")])
    await running
  }
}

describe("Child processes", () => {
  it("Child processes end with the sandbox, even during a call, and pending calls fail", async () => {
    const sandbox = await openSandbox({ children: 2, spares: 1 })
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
    const pids = sandbox.pids()
    expect(pids.length).toBe(2)
    const pending = Promise.allSettled([
      sandbox.run(callOf(loop("a"), { teamId: "a" })),
      sandbox.run(callOf(loop("b"), { teamId: "b" })),
      sandbox.run(callOf(loop("c"), { teamId: "c" }))
    ])
    await new Promise((resolve) => setTimeout(resolve, 50))
    await sandbox[Symbol.asyncDispose]()
    for (const result of await pending) expect(result).toMatchObject({ status: "rejected" })
    await areGone(pids)
    expect(sandbox.pids()).toEqual([])
  })

  it.each(["idle", "busy"])("Child processes end with a killed parent process (%s)", async (how) => {
    const program = fileURLToPath(new URL("survivor.ts", import.meta.url))
    const survivor = spawn(process.execPath, [program, how], { stdio: ["ignore", "pipe", "inherit"] })
    const [line] = await once(createInterface(survivor.stdout), "line")
    const pids: ReadonlyArray<number> = JSON.parse(String(line))
    expect(pids.length).toBe(2)
    expect(pids.filter(isAlive)).toEqual(pids)
    survivor.kill("SIGKILL")
    await areGone(pids)
  })

  it.runIf(process.platform === "linux")(
    "A child process with long-running code gets a lower priority than the gateway, and only then",
    async () => {
      await using sandbox = await openSandbox({ children: 1, spares: 0 }, {})
      await sandbox.run(callOf("for (;;);"))
      const [pid = 0] = sandbox.pids()
      const own = getPriority()
      expect(getPriority(pid)).toBe(Math.max(own, 10))
      // The first calls of a code prepare what it runs in, which may take long; and to come back takes a right.
      while (mayRaisePriority() && getPriority(pid) !== own) await sandbox.run(fine)
      expect(sandbox.pids()).toEqual([pid])
    }
  )

  it.runIf(process.platform === "linux")("Child processes are killed first, and have no permissions", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 }, {})
    await sandbox.run(fine)
    for (const pid of sandbox.pids()) {
      expect(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1").trim()).toBe("1000")
      const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").filter(Boolean)
      expect(environment).toEqual(["TZ=UTC"])
      // Reading its own source and the engine is all it may do.
      const flags = readFileSync(`/proc/${pid}/cmdline`, "latin1")
        .split("\0")
        .filter((flag) => flag.startsWith("--"))
      expect(flags).toContain("--permission")
      expect(flags.filter((flag) => flag.startsWith("--allow-") && !flag.startsWith("--allow-fs-read="))).toEqual([
        "--allow-addons"
      ])
      expect(
        flags.filter(
          (flag) =>
            flag.startsWith("--allow-fs-read=") &&
            !/(isolated-vm|node-gyp-build|sandbox\/src)\/$|alpine-release$/.test(flag)
        )
      ).toEqual([])
    }
  })

  it("A killed child process does not fail its calls", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 1 })
    await sandbox.run(fine)
    const slow = callOf(handler("const end = Date.now() + 300; while (Date.now() < end); return { body: 'slow' }"))
    const kill = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      for (const pid of sandbox.pids()) process.kill(pid, "SIGKILL")
    }
    const [{ request }] = await Promise.all([sandbox.run(slow), kill()])
    expect(request?.body).toBe("slow")
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
    expect(sandbox.pids().filter(isAlive).length).toBeGreaterThan(0)
  })
})

describe("Sandbox without child processes", () => {
  it("A sandbox that cannot start a process reports it at once and recovers later", async () => {
    const node = process.execPath
    try {
      process.execPath = "/nonexistent/node"
      await using sandbox = await openSandbox({ children: 2, spares: 1 })
      await expect(sandbox.run(fine)).rejects.toThrow("no sandbox process can be started")
      process.execPath = node
      const answer = (): Promise<unknown> => sandbox.run(fine).then(({ request }) => request?.body, String)
      await expect.poll(answer, { timeout: 60_000, interval: 20 }).toBe("fine")
    } finally {
      process.execPath = node
    }
  })
})

describe("Code that cannot be stopped", () => {
  it("Code that cannot be stopped harms only its own call and is rejected after three times", async () => {
    await using sandbox = await openSandbox({ children: 3, spares: 1 })
    await sandbox.run(fine)
    for (let i = 0; i < 3; i++) {
      const [bad, good] = await Promise.all([sandbox.run(callOf(monster, { teamId: "evil" })), sandbox.run(fine)])
      expect(["MEMORY_LIMIT", "TIMEOUT"]).toContain(bad.error?.code)
      expect(bad.warnings).toEqual(["its log lines are lost"])
      expect(good.request?.body).toBe("fine")
    }
    const before = sandbox.pids()
    // At once: before anything else happens in this process, so no child was asked.
    const refused = await Promise.race([
      sandbox.run(callOf(monster, { teamId: "evil" })),
      inLaterTurn("asked" as const)
    ])
    if (refused === "asked") throw new Error("a child was asked")
    expect(refused).toMatchObject({ request: null, logLevel: "fatal" })
    expect(["MEMORY_LIMIT", "TIMEOUT"]).toContain(refused.error?.code)
    expect(refused.warnings[0]).toContain("not run")
    expect(sandbox.pids()).toEqual(before)
    // Another team's equal code is judged by its own deeds.
    expect((await sandbox.run(callOf(monster, { teamId: "other" }))).warnings).toEqual(["its log lines are lost"])
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
  })

  it("Code that stops when it is told to is not counted", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 0 })
    // Large ones, which the collector does not copy: they fill the memory long before the time is up, on any machine.
    const call = callOf(handler("const a = []; for (;;) a.push(new Array(100_000).fill(a.length))"))
    for (let i = 0; i < 5; i++) {
      expect(await sandbox.run(call)).toMatchObject({ error: { code: "MEMORY_LIMIT" }, warnings: [] })
    }
  })
})

describe("Queue of calls", () => {
  it("A fast team overtakes slow teams whose code loops", async () => {
    await using sandbox = await openSandbox({ children: 2, spares: 0 })
    await untilTwoWork(sandbox)
    const order: Array<string> = []
    const loops = ["a", "b", "c"].map(async (name) => {
      await sandbox.run(callOf(loop(name), { teamId: name }))
      order.push(name)
    })
    const overtake = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        await sandbox.run(fine)
        order.push("fine")
      }
    }
    await Promise.all([...loops, overtake()])
    // In the order they came, two loops would have ended first. How many get by meanwhile is the machine's to say.
    expect(order[0]).toBe("fine")
  })

  it("The queue of calls is bounded and reports that it is full", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0, maxWaiting: 8 })
    await sandbox.run(fine)
    const calls = Array.from({ length: 6 }, () => sandbox.run(callOf(loop("x"), { teamId: "a" })))
    const results = Promise.allSettled(calls)
    await expect(sandbox.run(callOf(loop("x"), { teamId: "a" }))).rejects.toThrow("too many calls are waiting")
    await sandbox[Symbol.asyncDispose]()
    expect((await results).every(({ status }) => status === "rejected")).toBe(true)
  })

  it("A call does not wait in the queue forever", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0, maxWaitMs: 500 })
    // The child may take longer to start.
    while (
      !(await sandbox.run(fine).then(
        () => true,
        () => false
      ))
    );
    const [first] = await Promise.all([
      sandbox.run(callOf(loop("x"), { teamId: "a" })),
      expect(sandbox.run(fine)).rejects.toThrow("no child was free for 500 ms")
    ])
    expect(first.error?.code).toBe("TIMEOUT")
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
  })

  it("An interrupted caller frees its position in the queue", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0, maxWaiting: 4 })
    await sandbox.run(fine)
    const first = sandbox.run(callOf(loop("x"), { teamId: "a" }))
    const controller = new AbortController()
    // The one place that team b has: it is free again after the interruption.
    const given = Promise.allSettled([sandbox.run(callOf(loop("y"), { teamId: "b" }), controller.signal)])
    controller.abort()
    const next = async () => {
      expect(await given).toMatchObject([{ status: "rejected" }])
      return sandbox.run({ ...fine, teamId: "b" })
    }
    const [looped, served] = await Promise.all([first, next()])
    expect(looped.error?.code).toBe("TIMEOUT")
    expect(served.request?.body).toBe("fine")
  })
})

describe("Limits of calls", () => {
  it("Bodies of ten mebibytes are accepted, as text and as values", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    const text = "x".repeat(10 * 1_048_576 - 200)
    const texts = callOf(handler("return { body: request.body.replace(/^x/, 'y') }"), { request: { body: text } })
    expect((await sandbox.run(texts)).request?.body).toBe(`y${text.slice(1)}`)
    const wide = "é".repeat(4_900_000)
    const wides = callOf(handler("return { body: request.body + '!' }"), { request: { body: wide } })
    expect((await sandbox.run(wides)).request?.body).toBe(`${wide}!`)
    const items = Array.from({ length: 14_000 }, (_, id) => ({
      id,
      name: `name of ${id}`,
      tags: ["a", "b"],
      text: "z".repeat(600)
    }))
    expect(JSON.stringify(items).length).toBeGreaterThan(8.5e6)
    const values = callOf(handler("request.body[0].id = -1; return request"), { request: { body: items } })
    const { request, error } = await sandbox.run(values)
    expect(error).toBe(null)
    expect(request?.body).toEqual([{ ...items[0], id: -1 }, ...items.slice(1)])
  })

  it("A returned body beyond the parse limits stays JSON text", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    const grown = (code: string) => sandbox.run(callOf(handler(`return { body: ${code} }`)))
    const unlike = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 0]))
    const made = (n: number) => grown(`Object.fromEntries(Array.from({ length: ${n} }, (_, i) => ["k" + i, 0]))`)
    const { unlikeMembers } = bodyLimits
    expect((await made(unlikeMembers)).request?.body).toEqual(unlike(unlikeMembers))
    expect((await made(unlikeMembers + 1)).request?.body).toBe(JSON.stringify(unlike(unlikeMembers + 1)))
  })

  it("A body that exceeds the memory limit fails", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    const body = Array.from({ length: 1_500_000 }, () => ({}))
    const call = callOf(handler("return request"), { request: { body } })
    expect((await sandbox.run(call)).error?.code).toBe("MEMORY_LIMIT")
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
  })

  it("A body that is nested too deeply fails", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    const nested = (depth: number) => {
      const body = JSON.parse(`{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`)
      return sandbox.run(callOf(handler("return { body: 1 }"), { request: { body } }))
    }
    expect(await nested(3_999)).toMatchObject({ error: null, request: { body: 1 } })
    for (const depth of [4_001, 3_000_000]) {
      expect((await nested(depth)).error).toMatchObject({
        code: "MEMORY_LIMIT",
        message: expect.stringContaining("nested")
      })
    }
    expect((await sandbox.run(fine)).request?.body).toBe("fine")
  })

  it("A log keeps a hundred lines of four kibibytes", async () => {
    await using sandbox = await openSandbox({ children: 1, spares: 0 })
    const code = handler(
      "console.log('é'.repeat(4000)); for (let i = 0; i < 150; i++) console.log(i); console.error('late'); return {}"
    )
    const { logs, warnings, logLevel, error } = await sandbox.run(callOf(code))
    expect(error).toBe(null)
    expect(logs.length).toBe(100)
    expect(logs[0]?.message).toBe("é".repeat(2_048))
    expect(logs[99]?.message).toBe("98")
    expect(warnings).toEqual(["only the first 100 log lines are kept", "log lines longer than 4096 bytes are cut"])
    expect(logLevel).toBe("info")
    // What an earlier call left out is not a later one's.
    expect((await sandbox.run(fine)).warnings).toEqual([])
  })
})
