/** The flow on DBOS: a request is answered when its workflow is in PostgreSQL. */
import { DBOS } from "@dbos-inc/dbos-sdk"
import { flow, listen } from "./common.mjs"

DBOS.setConfig({ name: "bench", systemDatabaseUrl: process.env.DATABASE_URL, logLevel: "error" })
const run = DBOS.registerWorkflow((body) => flow(body, (name, step) => DBOS.runStep(step, { name })), { name: "flow" })
await DBOS.launch()
listen((body) => DBOS.startWorkflow(run)(JSON.parse(body)))
