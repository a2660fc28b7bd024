import { Effect } from "effect"
import { plain, say } from "../Output.ts"

export const sayWarnings = (warnings: ReadonlyArray<{ readonly message: string; readonly path: string }> | undefined) =>
  Effect.forEach(warnings ?? [], ({ message, path }) => say(plain(`warning: ${path}: ${message}`)), { discard: true })
