import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { setTimeout } from "node:timers/promises"
import type { Execution } from "../src/Call.ts"
import { escapes } from "./hostile/escapes.ts"
import type { Hostile } from "./hostile/Hostile.ts"
import { memory } from "./hostile/memory.ts"
import { output } from "./hostile/output.ts"
import { prototypes } from "./hostile/prototypes.ts"
import { time } from "./hostile/time.ts"
import { callOf, handler, openSandbox } from "./openSandbox.ts"
import type { OpenSandbox } from "./openSandbox.ts"

const corpus = { time, memory, prototypes, escapes, output }
const all = Object.values(corpus).flat()

/** What a call finds in a world that nobody has touched: nothing. */
const probe = `[
  Object.keys(Object.prototype), Object.keys(Array.prototype), typeof leak, typeof addHandler.leak,
  [1].map(String).join() === "1", JSON.stringify({ a: [1] }) === '{"a":[1]}', JSON.parse("1") === 1,
  typeof Promise.resolve, typeof Reflect.apply, [].push.length, Object.isFrozen(Object.prototype),
  Error.stackTraceLimit, typeof Error.prepareStackTrace
]`
const clean = [[], [], "undefined", "undefined", true, true, true, "function", "function", 1, false, 10, "undefined"]
/** In a reused isolate nobody can have touched it: what is frozen there says so. */
const cleanAndSealed = clean.with(10, true)

const codeOf = ({ code = "", handler }: Hostile): string =>
  handler === undefined
    ? code
    : `${code};addHandler("transform", (request, context) => { if (request.query === "probe") return { body: ${probe} };\n${handler} })`

interface Seen {
  readonly hostile: Execution
  readonly neighbour: Execution
  /** The same code in the same place again, asked what it finds. */
  readonly next: Execution | null
}

const quantile = (values: ReadonlyArray<number>, part: number): string =>
  (values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0).toFixed(2)
const spread = (ms: ReadonlyArray<number>): string =>
  `p50 ${quantile(ms, 0.5)} ms, p99 ${quantile(ms, 0.99)} ms, ${ms.length} calls`

const good = callOf(handler("request.body.seen = context.env.K; return request"), {
  teamId: "tm_good",
  env: { K: "v" }
})
const goodBody = { a: 1, seen: "v" }
const neighbour = callOf(handler("return { body: 'served' }"), { teamId: "tm_neighbour" })

/** Between two calls of the good team. */
const pauseMs = 5

/**
 * The whole corpus once, several scripts at a time, each by a team of its own, while a good team goes on calling. Containment
 * of each script, the call of another team right after it and the state of its world afterwards are looked at below.
 */
const paths = {
  "in fresh contexts": { isolation: "fresh" },
  "in reused isolates": { isolation: "sealed", firstCalls: 0 }
} as const
describe.each(Object.entries(paths))("Hostile code %s", (_, { isolation, ...options }) => {
  let sandbox: OpenSandbox
  const seen = new Map<Hostile, Seen>()
  const goodOnes: Array<Execution> = []

  const callGood = async (until: () => boolean): Promise<ReadonlyArray<number>> => {
    const ms: Array<number> = []
    while (!until()) {
      const start = performance.now()
      goodOnes.push(await sandbox.run({ ...good, isolation }))
      ms.push(performance.now() - start)
      // Without a pause, these calls would take a processor from the hostile scripts, which need their time to be stopped.
      await setTimeout(pauseMs)
    }
    return ms
  }

  const meet = async (hostile: Hostile, index: number): Promise<void> => {
    const call = callOf(codeOf(hostile), { teamId: `tm_${index}`, isolation })
    const ended = await sandbox.run(call)
    const served = await sandbox.run({ ...neighbour, isolation })
    const next =
      hostile.probe === false || hostile.handler === undefined
        ? null
        : await sandbox.run({ ...call, request: { ...call.request, query: "probe" } })
    seen.set(hostile, { hostile: ended, neighbour: served, next })
  }

  beforeAll(async () => {
    sandbox = await openSandbox({ children: 4, ...options })
    let calls = 0
    await callGood(() => calls++ >= 200)
    calls = 0
    const without = await callGood(() => calls++ >= 300)

    const waiting = [...all.entries()]
    let isOver = false
    const lanes = Array.from({ length: 4 }, async () => {
      for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) await meet(entry[1], entry[0])
    })
    const met = Promise.all(lanes).finally(() => (isOver = true))
    const [during] = await Promise.all([callGood(() => isOver), met])
    console.log(`a good team's calls: alone ${spread(without)}; beside ${all.length} hostile scripts ${spread(during)}`)
  }, 900_000)
  afterAll(() => sandbox[Symbol.asyncDispose]())

  it(`At least 40 different hostile scripts run (${isolation})`, () => {
    expect(all.length).toBeGreaterThanOrEqual(40)
    expect(new Set(all.map(codeOf)).size).toBe(all.length)
  })

  it(`Hostile code does not change the results of a good team (${isolation})`, () => {
    expect(goodOnes.length).toBeGreaterThan(500)
    expect(
      goodOnes.filter(
        ({ error, request }) => error !== null || JSON.stringify(request?.body) !== JSON.stringify(goodBody)
      )
    ).toEqual([])
  })

  for (const [kind, scripts] of Object.entries(corpus)) {
    describe(kind, () => {
      it.each(scripts.map((one) => [one.name, one] as const))(`Code is contained (${isolation}): %s`, (_, hostile) => {
        const { hostile: ended, neighbour: served, next } = seen.get(hostile) ?? {}
        expect(hostile.ends).toContain(ended?.error?.code ?? "ok")
        expect(ended?.request === null).toBe(ended?.error !== null)
        if (hostile.body !== undefined) expect(ended?.request?.body).toEqual(hostile.body)
        expect(Buffer.byteLength(JSON.stringify(ended))).toBeLessThan(12e6)
        expect(ended?.logs.length).toBeLessThanOrEqual(100)
        expect(ended?.error?.line ?? 1).toBeLessThanOrEqual(codeOf(hostile).split("\n").length)
        expect(served?.request?.body).toBe("served")
        if (next !== null) {
          expect(next?.error).toBe(null)
          // Code that a reused isolate does not suit is pinned, and runs in fresh contexts.
          expect(isolation === "fresh" ? [clean] : [clean, cleanAndSealed]).toContainEqual(next?.request?.body)
        }
      })
    })
  }
})
