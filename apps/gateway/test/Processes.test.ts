import { connect } from "node:net"
import { PassThrough, Writable } from "node:stream"
import { expect, it } from "vitest"
import { merged } from "@tidegate/telemetry/MergedExposition"
import { Connections, type Taker } from "../src/processes/Connections.ts"
import { countOf } from "../src/processes/Count.ts"
import { numbered, passOn, SharedOutput } from "../src/processes/LogLines.ts"
import { SignsOfLife } from "../src/processes/SignsOfLife.ts"

const gigabyte = 1024 ** 3

it.for([
  [2, 16, 1],
  [4, 16, 2],
  [8, 3.5, 3],
  [64, 256, 6],
  [1, 0.5, 1]
] as const)("With %i cores and %d GB, auto starts %i processes", ([cores, memory, count]) => {
  expect(countOf("auto", { cores, memory: memory * gigabyte })).toBe(count)
})

it("A number of processes is a whole number from 1 to 32, and without the setting there is one", () => {
  expect([undefined, "", "1", "3", "32"].map((given) => countOf(given))).toEqual([1, 1, 1, 3, 32])
  for (const given of ["0", "33", "1.5", "-1", "2 ", "AUTO"]) expect(countOf(given)).toMatch(/^TIDEGATE_PROCESSES/)
})

it("The log of several processes has whole lines with the number of their process", async () => {
  const written: Array<string> = []
  const to = new Writable({ write: (chunk, _, done) => (written.push(String(chunk)), done()) })
  const from = new PassThrough()
  passOn(from, new SharedOutput(to), (line) => numbered(line, 2))
  from.write('{"message":"a')
  from.write('b"}\nplain\n\nla')
  from.end("st")
  await new Promise((resolve) => void from.once("close", resolve))
  expect(written.join("")).toBe('{"process":2,"message":"ab"}\n[2] plain\n\n[2] last\n')
})

it("While the reader of the log stands still nothing more is read from the processes, and then all lines come", async () => {
  const written: Array<string> = []
  let isReading = false
  let read = (): void => {}
  const to = new Writable({
    decodeStrings: false,
    highWaterMark: 1_024,
    write: (chunk, _, done) => {
      read = () => {
        written.push(String(chunk))
        done()
      }
      if (isReading) read()
    }
  })
  const output = new SharedOutput(to)
  const processes = [1, 2].map((id) => {
    const from = new PassThrough({ highWaterMark: 1_024 })
    passOn(from, output, (line) => numbered(line, id))
    return from
  })
  const lines = Array.from({ length: 200 }, (_, n) => `${String(n).padStart(3, "0")} ${"x".repeat(96)}`)
  const chunks = Array.from({ length: 20 }, (_, n) => `${lines.slice(n * 10, n * 10 + 10).join("\n")}\n`)
  // Everything that a process writes before its pipe is full.
  for (const from of processes) for (const chunk of chunks) from.write(chunk)
  await new Promise((resolve) => void setImmediate(resolve))
  // Each was read until the output was full, and not further.
  expect(processes.map((from) => from.isPaused())).toEqual([true, true])
  expect(to.writableLength).toBeLessThan(5 * chunks[0]!.length)
  for (const from of processes) from.end()
  isReading = true
  read()
  await Promise.all(processes.map((from) => new Promise((resolve) => void from.once("close", resolve))))
  await new Promise<void>((resolve) => void to.end(resolve))
  const all = written.join("").split("\n")
  for (const id of [1, 2]) {
    const own = all.filter((line) => line.startsWith(`[${id}] `)).map((line) => line.slice(4))
    expect(own).toEqual(lines)
  }
})

it("A process that does not answer is silent after one look and frozen after 30 seconds, and is asked once", () => {
  let asked = 0
  const signs = new SignsOfLife(() => void asked++)
  const seen = (): readonly [boolean, boolean] => [signs.isSilent, signs.isFrozen]
  signs.look()
  expect(seen()).toEqual([false, false])
  for (let missed = 1; missed < 6; missed++) {
    signs.look()
    expect(seen()).toEqual([true, false])
  }
  signs.look()
  expect(seen()).toEqual([true, true])
  expect(asked).toBe(1)
  signs.answered()
  expect(seen()).toEqual([false, false])
  signs.look()
  expect(asked).toBe(2)
})

it("A process that is silent gets no new connections while another one answers, and gets them when none does", async () => {
  const connections = new Connections()
  const taken = [0, 0]
  const isReady = [true, true]
  const takers = [0, 1].map((id): Taker => ({
    get isReady() {
      return isReady[id]!
    },
    tell: (_, __, sent) => {
      taken[id]!++
      sent?.()
      return true
    }
  }))
  const at = { host: "127.0.0.1", port: 0 }
  const { port } = await connections.add(takers[0]!, at)
  await connections.add(takers[1]!, at)
  const open = (): Promise<unknown> =>
    new Promise((resolve) => void connect(port, at.host).once("close", resolve).resume())
  const share = async (): Promise<ReadonlyArray<number>> => {
    taken.fill(0)
    for (let n = 0; n < 4; n++) await open()
    return [...taken]
  }
  expect(await share()).toEqual([2, 2])
  isReady[1] = false
  expect(await share()).toEqual([4, 0])
  isReady[0] = false
  expect(await share()).toEqual([2, 2])
  for (const taker of takers) connections.remove(taker)
})

it("Metrics of several processes keep the series of a metric together and name their process", () => {
  const one = '# HELP a Of a.\n# TYPE a counter\na{x="1"} 1\n# TYPE b gauge\nb 2\n'
  const two = '# HELP a Of a.\n# TYPE a counter\na{x="1"} 3\n# TYPE b gauge\nb{} 4\n'
  expect(
    merged(
      new Map([
        [1, one],
        [2, two]
      ])
    )
  ).toBe(
    '# HELP a Of a.\n# TYPE a counter\na{process="1",x="1"} 1\na{process="2",x="1"} 3\n# TYPE b gauge\nb{process="1"} 2\nb{process="2"} 4\n'
  )
})
