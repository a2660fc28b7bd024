import { PassThrough, Writable } from "node:stream"
import { expect, it } from "vitest"
import { merged } from "@tidegate/telemetry/MergedExposition"
import { countOf } from "../src/processes/Count.ts"
import { numbered, passOn } from "../src/processes/LogLines.ts"

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
  expect([undefined, "1", "3", "32"].map((given) => countOf(given))).toEqual([1, 1, 3, 32])
  for (const given of ["", "0", "33", "1.5", "-1", "2 ", "AUTO"]) expect(countOf(given)).toMatch(/^TIDEGATE_PROCESSES/)
})

it("The log of several processes has whole lines with the number of their process", async () => {
  const written: Array<string> = []
  const to = new Writable({ write: (chunk, _, done) => (written.push(String(chunk)), done()) })
  const from = new PassThrough()
  passOn(from, to, (line) => numbered(line, 2))
  from.write('{"message":"a')
  from.write('b"}\nplain\n\nla')
  from.end("st")
  await new Promise((resolve) => void from.once("close", resolve))
  expect(written.join("")).toBe('{"process":2,"message":"ab"}\n[2] plain\n\n[2] last\n')
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
