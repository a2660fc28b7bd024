import { Config, Effect, Layer, Logger } from "effect"

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

/** The log of a process, in the format of its settings. */
export const log = Layer.unwrap(
  logFormat.pipe(
    // An invalid value is reported where all settings are read.
    Effect.orElseSucceed(() => "json" as const),
    Effect.map((format) => {
      const logger = format === "pretty" ? Logger.consolePretty() : Logger.consoleJson
      return Logger.layer([
        Logger.make((entry) => {
          if (!isMoot(entry.message)) logger.log(entry)
        })
      ])
    })
  )
)
