import { Cause, Config, Effect, Layer, Logger } from "effect"

/** The format of the log. An invalid value is reported where all settings are read. */
export const logFormat = Config.withDefault(
  Config.Literals(["json", "pretty"], "TIDEGATE_LOG_FORMAT"),
  process.stdout.isTTY ? ("pretty" as const) : ("json" as const)
)

/**
 * Effect's cluster logs this warning for the first runner that starts and the last one that stops, so for every start and stop of a single
 * gateway.
 */
export const isMoot = (message: unknown): boolean =>
  (Array.isArray(message) ? message[0] : message) === "No healthy runners available"

/** Characters of the log that may wait for its reader. */
const maxWaiting = 8 * 1024 * 1024

/**
 * Drops lines while too much of the log waits for its reader (`waiting`, in characters), and then says how many. Without it, a reader that stands
 * still would fill the memory.
 */
export const bounded = (logger: Logger.Logger<unknown, void>, waiting: () => number): Logger.Logger<unknown, void> => {
  let dropped = 0
  return Logger.make((entry) => {
    if (waiting() > maxWaiting) {
      dropped++
      return
    }
    if (dropped > 0) {
      const message = `${dropped} lines of the log were dropped before this one, because its reader was too slow`
      dropped = 0
      logger.log({ ...entry, message, logLevel: "Warn", cause: Cause.empty })
    }
    logger.log(entry)
  })
}

/** The log of a process, in the format of its settings. */
export const log = Layer.unwrap(
  logFormat.pipe(
    // An invalid value is reported where all settings are read.
    Effect.orElseSucceed(() => "json" as const),
    Effect.map((format) => {
      const logger = bounded(
        format === "pretty" ? Logger.consolePretty() : Logger.consoleJson,
        () => process.stdout.writableLength
      )
      return Logger.layer([
        Logger.make((entry) => {
          if (!isMoot(entry.message)) logger.log(entry)
        })
      ])
    })
  )
)
