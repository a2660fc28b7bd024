import { Effect, Logger } from "effect"
import { expect, it } from "vitest"
import { bounded } from "../src/Log.ts"

it("The log drops and counts lines while its reader stands still, and goes on with the count", async () => {
  const said: Array<unknown> = []
  let waiting = 0
  const logger = bounded(
    Logger.make(({ logLevel, message }) => void said.push(`${logLevel} ${String(message)}`)),
    () => waiting
  )
  const logged = (message: string) =>
    Effect.runPromise(Effect.logInfo(message).pipe(Effect.provide(Logger.layer([logger]))))
  await logged("before")
  waiting = 8 * 1024 * 1024 + 1
  await logged("dropped")
  await logged("dropped as well")
  waiting = 0
  await logged("after")
  await logged("later")
  expect(said).toEqual([
    "Info before",
    "Warn 2 lines of the log were dropped before this one, because its reader was too slow",
    "Info after",
    "Info later"
  ])
})
