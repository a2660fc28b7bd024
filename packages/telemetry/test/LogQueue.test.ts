import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { describe } from "vitest"
import { LogQueue, type LogRecord, recordOf } from "../src/LogQueue.ts"
import { metrics } from "../src/Metrics.ts"

/** The record of a line that is logged with these annotations. */
const recorded = (message: string, annotations: Readonly<Record<string, unknown>> = {}): Effect.Effect<LogRecord> =>
  Effect.suspend(() => {
    const records: Array<LogRecord> = []
    return Effect.logError(message).pipe(
      Effect.annotateLogs(annotations),
      Effect.provide(Logger.layer([Logger.make((entry) => void records.push(recordOf(entry)))])),
      Effect.map(() => records[0]!)
    )
  })

const dropped = (): number => metrics.linesDropped.at("queue_full").value

describe("Lines of the log that wait for the collector", () => {
  it.effect("A line has its level, its text and its annotations", () =>
    Effect.gen(function* () {
      expect(yield* recorded("a line", { outcome: "none", attempt: 2 })).toMatchObject({
        severityNumber: 17,
        severityText: "ERROR",
        body: { stringValue: "a line" },
        attributes: [
          { key: "outcome", value: { stringValue: "none" } },
          { key: "attempt", value: { intValue: 2 } }
        ]
      })
    })
  )

  it.effect("A line is limited in the number of its annotations and in the length of its texts", () =>
    Effect.gen(function* () {
      const annotations = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`a${at}`, "x".repeat(20_000)]))
      const { attributes, body, droppedAttributesCount } = yield* recorded("y".repeat(20_000), annotations)
      expect(attributes.length).toBe(32)
      expect(droppedAttributesCount).toBe(8)
      expect(attributes[0]!.value.stringValue?.length).toBe(8_192)
      expect(body?.stringValue?.length).toBe(8_192)
    })
  )

  it.effect("Lines are dropped and counted when too many wait, until some are taken", () =>
    Effect.gen(function* () {
      const queue = new LogQueue()
      const line = yield* recorded("a line")
      const before = dropped()
      for (let i = 0; i < 4_100; i++) queue.push(line)
      expect([queue.size, dropped() - before]).toEqual([4_096, 4])
      expect(queue.take(10).length).toBe(10)
      queue.push(line)
      expect([queue.size, dropped() - before]).toEqual([4_087, 4])
    })
  )

  it.effect("Lines are dropped and counted when those that wait are too large, until some are taken", () =>
    Effect.gen(function* () {
      const queue = new LogQueue()
      const line = yield* recorded("y".repeat(8_192))
      const before = dropped()
      for (let i = 0; i < 513; i++) queue.push(line)
      expect([queue.size, dropped() - before]).toEqual([512, 1])
      queue.take(1)
      queue.push(line)
      expect([queue.size, dropped() - before]).toEqual([512, 1])
    })
  )
})
