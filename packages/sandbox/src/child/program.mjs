/** Before `main.ts`: the sources are those that the parent sends, without their types (ChildProgram.ts), and no others. */
import { readFileSync } from "node:fs"
import { registerHooks } from "node:module"

const sources = new Map(Object.entries(JSON.parse(readFileSync(3, "utf8"))))

registerHooks({
  load: (url, context, next) => {
    const source = sources.get(url)
    if (source !== undefined) return { format: "module", source, shortCircuit: true }
    if (url.endsWith(".ts")) throw new Error(`${url} was not sent`)
    return next(url, context)
  }
})
