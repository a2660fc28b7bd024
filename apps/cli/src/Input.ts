import { open } from "node:fs/promises"
import { Effect } from "effect"
import { type CliFailure, usage } from "./Failure.ts"

/** Reads standard input, at most `limit` bytes. */
export const readInput = (limit: number): Effect.Effect<Buffer, CliFailure> =>
  Effect.tryPromise({
    try: async () => {
      const parts: Array<Buffer> = []
      let size = 0
      for await (const part of process.stdin as AsyncIterable<Buffer>) {
        parts.push(part)
        if ((size += part.length) > limit) throw usage(`standard input has more than ${limit} bytes`)
      }
      return Buffer.concat(parts)
    },
    catch: (error) =>
      (error as { _tag?: string })._tag === "CliFailure"
        ? (error as CliFailure)
        : usage("standard input cannot be read")
  })

/** Reads a file, at most `limit` bytes; `-` is standard input. Never reads more, whatever kind of file it is. */
export const readFileAt = (path: string, limit: number): Effect.Effect<Buffer, CliFailure> => {
  if (path === "-") return readInput(limit)
  return Effect.flatMap(
    Effect.tryPromise({
      try: async () => {
        const file = await open(path, "r")
        try {
          const buffer = Buffer.alloc(limit + 1)
          let length = 0
          while (length < buffer.length) {
            const { bytesRead } = await file.read(buffer, length, buffer.length - length)
            if (bytesRead === 0) break
            length += bytesRead
          }
          return buffer.subarray(0, length)
        } finally {
          await file.close()
        }
      },
      catch: (error) => usage(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? "error"}`)
    }),
    (bytes) =>
      bytes.length > limit ? Effect.fail(usage(`${path} has more than ${limit} bytes`)) : Effect.succeed(bytes)
  )
}
