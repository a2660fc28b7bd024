/**
 * The destination of all deliveries. It answers 200, at once or after `ms` under `/after-{ms}/`. For each run it records the
 * latency from the intended send time to the answer, and how often each event arrived.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Histogram } from "hdr-histogram-js"
import { type Latency, makeHistogram, record, summarize } from "./Latency.ts"
import { nowMicros, PAYLOAD_BYTES, readStamp, type Stamp, STAMP_BYTES } from "./Payload.ts"
import { serve } from "./Worker.ts"

/** The arrivals of one run. Times are microseconds of the shared monotonic clock. */
export interface Arrivals {
  /** Distinct events for each path that a destination posts to. */
  readonly distinct: Readonly<Record<string, number>>
  /** Distinct events of all paths. */
  readonly delivered: number
  readonly duplicates: number
  /** First arrivals at a path after a later event of the same customer had already arrived there. */
  readonly inversions: number
  readonly lastAt: number
  /** From sender to target, first arrivals only. */
  readonly latency: Latency
}

interface TargetPath {
  seen: Uint8Array
  distinct: number
  /** The highest sequence number that has arrived, for each customer. */
  readonly latest: Map<number, number>
}

class Run {
  readonly histogram: Histogram = makeHistogram()
  readonly targetPaths = new Map<string, TargetPath>()
  delivered = 0
  duplicates = 0
  inversions = 0
  lastAt = 0

  arrive(path: string, { customer, sentAt, sequence }: Stamp): void {
    let targetPath = this.targetPaths.get(path)
    if (targetPath === undefined) {
      this.targetPaths.set(path, (targetPath = { seen: new Uint8Array(8192), distinct: 0, latest: new Map() }))
    }
    const at = sequence >> 3
    const bit = 1 << (sequence & 7)
    if (at >= targetPath.seen.length) {
      const grown = new Uint8Array(Math.max(at + 1, targetPath.seen.length * 2))
      grown.set(targetPath.seen)
      targetPath.seen = grown
    }
    if ((targetPath.seen[at]! & bit) !== 0) {
      this.duplicates++
      return
    }
    targetPath.seen[at]! |= bit
    targetPath.distinct++
    this.delivered++
    if (sequence < (targetPath.latest.get(customer) ?? -1)) this.inversions++
    else targetPath.latest.set(customer, sequence)
    this.lastAt = nowMicros()
    record(this.histogram, this.lastAt - sentAt)
  }

  report(): Arrivals {
    return {
      distinct: Object.fromEntries([...this.targetPaths].map(([path, targetPath]) => [path, targetPath.distinct])),
      delivered: this.delivered,
      duplicates: this.duplicates,
      inversions: this.inversions,
      lastAt: this.lastAt,
      latency: summarize(this.histogram)
    }
  }
}

/** Starts a target on a free loopback port. */
export const makeTarget = async () => {
  const runs = new Map<number, Run>()
  const runOf = (number: number): Run => {
    let run = runs.get(number)
    if (run === undefined) runs.set(number, (run = new Run()))
    return run
  }
  let malformed = 0
  const server = createServer((request, response) => {
    let head: Buffer | undefined
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
      if (head === undefined) head = chunk
      else if (head.length < STAMP_BYTES) head = Buffer.concat([head, chunk])
    })
    const answer = () => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": 2 }).end("ok")
      const stamp = length === PAYLOAD_BYTES && head !== undefined ? readStamp(head) : undefined
      if (stamp === undefined) malformed++
      else runOf(stamp.run).arrive(request.url!, stamp)
    }
    const after = Number(/^\/after-(\d+)\//.exec(request.url!)?.[1] ?? 0)
    request.on("end", after === 0 ? answer : () => setTimeout(answer, after))
  })
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))

  const port = () => (server.address() as AddressInfo).port
  /** `malformed`: bodies since the last report whose length or beginning was not that of a sent body. */
  const report = (input: { readonly run: number }): Arrivals & { readonly malformed: number } => {
    const found = { ...runOf(input.run).report(), malformed }
    malformed = 0
    return found
  }
  /**
   * Waits until every target path has `count` distinct events of the run, then reports. It stops earlier after a pause of `stallMillis`
   * between arrivals, or after `limitMillis`. The caller compares: missing events are a result, and not a failure of the target.
   */
  const drained = async (input: {
    readonly run: number
    readonly targetPaths: ReadonlyArray<string>
    readonly count: number
    readonly stallMillis: number
    readonly limitMillis: number
  }) => {
    const run = runOf(input.run)
    const started = nowMicros()
    const complete = () =>
      input.targetPaths.every((targetPath) => (run.targetPaths.get(targetPath)?.distinct ?? 0) >= input.count)
    const waited = (since: number) => (nowMicros() - since) / 1000
    while (
      !complete() &&
      waited(Math.max(run.lastAt, started)) < input.stallMillis &&
      waited(started) < input.limitMillis
    ) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return report(input)
  }
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return { port, report, drained, close }
}

/** The commands of the target process. */
export type TargetCommands = Awaited<ReturnType<typeof makeTarget>>

if (import.meta.main) serve({ ...(await makeTarget()) })
