import { Formatter, Logger } from "effect"
import { OtlpResource, type OtlpLogger } from "effect/observability"
import { metrics } from "./Metrics.ts"

type ScopeLogs = OtlpLogger.LogsData["resourceLogs"][number]["scopeLogs"][number]
export type LogRecord = NonNullable<ScopeLogs["logRecords"]>[number]

const severities: Readonly<Record<string, NonNullable<LogRecord["severityNumber"]>>> = {
  TRACE: 1,
  DEBUG: 5,
  INFO: 9,
  WARN: 13,
  ERROR: 17,
  FATAL: 21
}

/** Characters of a text, and annotations of a line: a cause can contain anything. */
const longestText = 8_192
const maxAttributes = 32

const textOf = (value: unknown): string =>
  (typeof value === "string" ? value : Formatter.formatJson(value)).slice(0, longestText)

const isPlain = (value: unknown): value is number | boolean => typeof value === "number" || typeof value === "boolean"

/** A line in the collector's format: made of what the text of the log is made of, so it has nothing that the text hides. */
export const recordOf = (entry: Logger.Options<unknown>): LogRecord => {
  const { annotations, cause, level, message } = Logger.formatStructured.log(entry)
  const time = `${entry.date.getTime()}000000`
  const named = Object.entries(annotations)
    .slice(0, maxAttributes)
    .map(([name, value]) => [name.slice(0, 128), isPlain(value) ? value : textOf(value)] as const)
  return {
    timeUnixNano: time,
    observedTimeUnixNano: time,
    severityNumber: severities[level] ?? 0,
    severityText: level,
    body: { stringValue: textOf(message) },
    attributes: OtlpResource.entriesToAttributes(
      [...named, ...(cause === undefined ? [] : [["exception.stacktrace", textOf(cause)] as const])].map(
        ([name, value]): [string, unknown] => [name, value]
      )
    ),
    droppedAttributesCount: Math.max(0, Object.keys(annotations).length - maxAttributes)
  }
}

const sizeOf = ({ attributes, body }: LogRecord): number =>
  attributes.reduce(
    (sum, { key, value }) => sum + key.length + (value.stringValue?.length ?? 8),
    body?.stringValue?.length ?? 0
  )

const maxWaiting = 4_096
/** Characters of all waiting lines. */
const maxSize = 4 * 1024 ** 2

/** Lines of the log that wait for the collector. If the queue is full, further lines are only in the text of the log, and counted. */
export class LogQueue {
  #records: Array<LogRecord> = []
  #size = 0

  push(record: LogRecord): void {
    const size = sizeOf(record)
    if (this.#records.length >= maxWaiting || this.#size + size > maxSize) {
      metrics.linesDropped.at("queue_full").add()
      return
    }
    this.#records.push(record)
    this.#size += size
  }

  get size(): number {
    return this.#records.length
  }

  take(most: number): ReadonlyArray<LogRecord> {
    const taken = this.#records.splice(0, most)
    for (const record of taken) this.#size -= sizeOf(record)
    return taken
  }
}
