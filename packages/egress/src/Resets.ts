import type { Guard } from "./Guard.ts"

/**
 * If a body ends with its connection, undici treats a reset as the normal end, and recognises it by the error code. A broken body
 * must not be returned as complete, so undici gets a similar code that it does not treat so.
 */
export const distinguishingResets =
  (connect: Guard["connect"]): Guard["connect"] =>
  (target, callback) =>
    connect(target, (...result) => {
      result[1]?.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ECONNRESET") error.code = "ECONNABORTED"
      })
      callback(...result)
    })
