/**
 * The cost of a transformation in fresh worlds and in reused isolates: `node benchmarks/src/Sandbox.ts`. It measures the caller's
 * latency, the CPU per call of this process and of the children (Linux) with framing included, and resident memory: for one
 * transformation, and for 200 that take turns.
 */
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import type { Call, Isolation } from "@tidegate/sandbox/Sandbox"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { makeHistogram, record, summarize } from "./Latency.ts"

const code = `addHandler("transform", (request, context) => {
  request.body.region = context.env.REGION
  request.headers["x-kind"] = request.body.items[0].kind
  return request
})`

const callOf = (index: number, isolation: Isolation): Call => ({
  teamId: `tm_${index % 20}`,
  code: `${code} // ${index}`,
  codeHash: String(index),
  isolation,
  env: { REGION: "eu" },
  request: {
    headers: { "content-type": "application/json", "user-agent": "sender/1.0" },
    body: { id: index, items: Array.from({ length: 10 }, (_, id) => ({ id, kind: "order", price: 9.5 })) },
    query: "",
    parsed_query: {},
    path: "/orders",
    method: "POST"
  },
  context: {
    connection_id: "web_1",
    source_id: "src_1",
    destination_id: "des_1",
    request_id: "req_1",
    team_id: "tm_1",
    timestamp: null
  }
})

const ofProc = (pid: number | "self") => {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? []
  const kib = /VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1]
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, mib: Number(kib) / 1_024 }
}

interface Load {
  readonly calls: number
  readonly atOnce: number
  readonly codes: number
  readonly pauseMs?: number
}

const loads: Readonly<Record<string, Load>> = {
  "(warm-up)": { calls: 2_000, atOnce: 8, codes: 4 },
  "one at a time": { calls: 3_000, atOnce: 1, codes: 1 },
  "one at a time, 2 ms between": { calls: 1_000, atOnce: 1, codes: 1, pauseMs: 2 },
  "25 at once, one transformation": { calls: 20_000, atOnce: 25, codes: 1 },
  "eight at once, 4 transformations": { calls: 4_000, atOnce: 8, codes: 4 },
  "eight at once, 200 transformations": { calls: 4_000, atOnce: 8, codes: 200 }
}

const measure = Effect.fnUntraced(function* (isolation: Isolation, name: string, options: Load) {
  const sandbox = yield* Sandbox
  const usage = () => ({ own: ofProc("self"), children: sandbox.pids().map(ofProc) })
  const cpuOf = (all: ReadonlyArray<{ readonly cpuMs: number }>) => all.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
  const histogram = makeHistogram()
  const before = usage()
  const start = performance.now()
  yield* Effect.forEach(
    Array.from({ length: options.calls }, (_, index) => callOf((index * 7_919) % options.codes, isolation)),
    Effect.fnUntraced(function* (call) {
      const at = performance.now()
      const { error } = yield* sandbox.run(call)
      record(histogram, (performance.now() - at) * 1_000)
      if (error !== null) throw new Error(error.message)
      if (options.pauseMs !== undefined) yield* Effect.sleep(options.pauseMs)
    }),
    { concurrency: options.atOnce, discard: true }
  )
  const seconds = (performance.now() - start) / 1_000
  const after = usage()
  const { p50, p99 } = summarize(histogram)
  const own = (after.own.cpuMs - before.own.cpuMs) / options.calls
  const children = (cpuOf(after.children) - cpuOf(before.children)) / options.calls
  const mib = after.own.mib + after.children.reduce((sum, { mib }) => sum + mib, 0)
  console.log(
    `${isolation.padEnd(7)}${name.padEnd(35)} p50 ${p50.toFixed(2)} ms  p99 ${p99.toFixed(2)} ms  ${(options.calls / seconds).toFixed(0)}/s  ` +
      `CPU ms per call: here ${own.toFixed(3)}, children ${children.toFixed(3)}, together ${(own + children).toFixed(3)}  RSS of all ${mib.toFixed(0)} MiB`
  )
})

for (const isolation of ["fresh", "sealed"] as const) {
  await Effect.runPromise(
    Effect.forEach(Object.entries(loads), ([name, load]) => measure(isolation, name, load), { discard: true }).pipe(
      // Otherwise children that end meanwhile would not be counted.
      Effect.provide(Sandbox.layer({ idleMs: 600_000 }))
    )
  )
}
