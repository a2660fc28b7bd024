/** A process of its own with a sandbox, for a test to kill: prints the ids of its children once they work, and goes on. */
import { callOf, handler, openSandbox } from "./openSandbox.ts"

const sandbox = await openSandbox({ children: 2, spares: 1 })
await sandbox.run(callOf(handler("return request")))
console.log(JSON.stringify(sandbox.pids()))
const endless = process.argv[2] === "busy"
for (;;) await sandbox.run(callOf(handler(endless ? "for (;;);" : "return request")))
