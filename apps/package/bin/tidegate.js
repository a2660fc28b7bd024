#!/usr/bin/env node
import * as module from "node:module"

// Compiled code is kept from one run to the next, from Node 22 on: most of the time to start is compiling.
module.enableCompileCache?.()
const [command] = process.argv.slice(2)
if (["start", "admin", "doctor", "backup", "restore"].includes(command)) await import("./start.js")
else {
  if (globalThis.WebSocket === undefined || URL.parse === undefined) await import("./older.js")
  await import("./main.js")
}
