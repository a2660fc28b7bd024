import { execFileSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { deliveryBounds, meansOfProcess } from "../src/Bounds.ts"

const gigabyte = 1024 ** 3
const unlimited = Number.POSITIVE_INFINITY

describe("Delivery limits", () => {
  it.each([
    ["many descriptors, much memory", { files: 1_048_576, memory: 64 * gigabyte }, 8_192, 160],
    ["a container of a gigabyte", { files: 1_048_576, memory: gigabyte }, 1_024, 128],
    ["a shell's 1,024 descriptors", { files: 1_024, memory: 16 * gigabyte }, 256, 160],
    ["no limit of descriptors", { files: unlimited, memory: 4 * gigabyte }, 4_096, 160],
    ["next to nothing", { files: 100, memory: gigabyte / 16 }, 64, 8]
  ])("Delivery limits follow the descriptors and the memory of the process: %s", (_, means, deliveries, megabytes) => {
    const bounds = deliveryBounds(means)
    expect(bounds.deliveries).toBe(deliveries)
    expect(bounds.windowBytes).toBe(megabytes * 1024 * 1024)
    expect(bounds.connections).toBeGreaterThan(bounds.deliveries)
  })

  it("Descriptor and memory limits of this process are readable", () => {
    const { files, memory } = meansOfProcess(1)
    expect(files).toBeGreaterThan(0)
    expect(memory).toBeGreaterThan(64 * 1024 * 1024)
    expect(Number.isFinite(memory)).toBe(true)
  })
})

describe("Limits of caches and of workflow runs in memory", () => {
  it.each([256, 512, 2_048])("Caches and runs get an eighth of a heap of %i MB each", (heapMb) => {
    const bounds = new URL("../src/Bounds.ts", import.meta.url).href
    const program = `import { cacheBytes, runBytes } from "${bounds}"; console.log(JSON.stringify([cacheBytes(), runBytes()]))`
    const args = [`--max-old-space-size=${heapMb}`, "--max-semi-space-size=1", "--input-type=module", "-e", program]
    const [caches, runs] = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as [number, number]
    expect(runs).toBe(caches)
    // The young generation comes on top of the old one.
    expect(runs / 1_048_576).toBeGreaterThanOrEqual(heapMb / 8)
    expect(runs / 1_048_576).toBeLessThan(heapMb / 8 + 8)
  })
})
