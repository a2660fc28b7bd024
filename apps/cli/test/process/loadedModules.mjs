import { writeSync } from "node:fs"
import { registerHooks } from "node:module"

/** For `node --import`: prints the modules that a program has loaded, one a line, to standard error when it ends. */

const loaded = []
registerHooks({
  load: (url, context, next) => {
    if (!url.startsWith("node:")) loaded.push(url)
    return next(url, context)
  }
})
process.once("exit", () => writeSync(2, loaded.join("\n")))
