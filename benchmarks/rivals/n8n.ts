import { execFile } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { install } from "./install.ts"
import { ProgramError, post, run } from "./Program.ts"

const folder = join(import.meta.dirname, "n8n")
const program = join(folder, "node_modules/n8n/bin/n8n")
/** It refuses the Node of the project, which is too new for it. */
const node24 = join(folder, `node_modules/node-linux-${process.arch}/bin/node`)

const id = "benchbenchbench1"

const node = (name: string, type: string, typeVersion: number, parameters: object, index: number) => ({
  id: `${index}`,
  name,
  type: `n8n-nodes-base.${type}`,
  typeVersion,
  position: [index * 200, 0],
  parameters
})

/** A node that makes one text. */
const text = (value: string) => ({
  assignments: { assignments: [{ id: "text", name: "text", type: "string", value: `={{ ${value} }}` }] },
  options: {}
})

/** The steps of `programs/common.mjs` as nodes. It answers when the request is taken, as the others answer before they run. */
const workflow = (target: string) => {
  const body = "$('Webhook').item.json.body"
  const condition = {
    id: "eur",
    leftValue: `={{ ${body}.currency }}`,
    rightValue: "EUR",
    operator: { type: "string", operation: "equals" }
  }
  const nodes = [
    {
      ...node(
        "Webhook",
        "webhook",
        2,
        { path: "bench", httpMethod: "POST", responseMode: "onReceived", options: {} },
        0
      ),
      // Without it, n8n puts the names of the workflow and the node before the path.
      webhookId: id
    },
    node("read", "set", 3.4, text(`${body}.customer.email.toUpperCase()`), 1),
    node(
      "only_eur",
      "filter",
      2,
      {
        conditions: {
          options: { caseSensitive: true, typeValidation: "strict" },
          combinator: "and",
          conditions: [condition]
        },
        options: {}
      },
      2
    ),
    node("upper", "set", 3.4, text("$json.text.toUpperCase()"), 3),
    node("again", "set", 3.4, text(`(${body}.type + ' of ' + $json.text).toUpperCase()`), 4),
    node("done", "set", 3.4, text("$json.text.toUpperCase()"), 5),
    node(
      "send",
      "httpRequest",
      4.2,
      {
        method: "POST",
        url: target,
        sendBody: true,
        contentType: "raw",
        rawContentType: "application/json",
        body: `={{ JSON.stringify(${body}) }}`,
        options: {}
      },
      6
    )
  ]
  const connections = Object.fromEntries(
    nodes.slice(1).map(({ name }, at) => [nodes[at]!.name, { main: [[{ node: name, type: "main", index: 0 }]] }])
  )
  return [{ id, name: "bench", active: false, nodes, connections, settings: { executionOrder: "v1" } }]
}

/** n8n in its regular mode: one process, on PostgreSQL. */
export const startN8n = Effect.fnUntraced(function* (place: {
  readonly home: string
  readonly port: number
  readonly databaseUrl: string
  readonly target: string
  readonly log: string
}) {
  const { hostname, password, pathname, port, username } = new URL(place.databaseUrl)
  const env = {
    DB_TYPE: "postgresdb",
    DB_POSTGRESDB_HOST: hostname,
    DB_POSTGRESDB_PORT: port,
    DB_POSTGRESDB_DATABASE: pathname.slice(1),
    DB_POSTGRESDB_USER: decodeURIComponent(username),
    DB_POSTGRESDB_PASSWORD: decodeURIComponent(password),
    N8N_USER_FOLDER: place.home,
    N8N_PORT: String(place.port),
    N8N_LISTEN_ADDRESS: "127.0.0.1",
    N8N_DIAGNOSTICS_ENABLED: "false",
    N8N_VERSION_NOTIFICATIONS_ENABLED: "false",
    N8N_TEMPLATES_ENABLED: "false"
  }
  const file = join(place.home, "workflow.json")
  const command = (...args: ReadonlyArray<string>) =>
    promisify(execFile)(node24, [program, ...args], { env: { ...process.env, ...env }, cwd: place.home })
  yield* Effect.tryPromise({
    try: async () => {
      install("n8n", "n8n")
      writeFileSync(file, JSON.stringify(workflow(place.target)))
      await command("import:workflow", `--input=${file}`)
      await command("update:workflow", `--id=${id}`, "--active=true")
    },
    catch: (cause) => new ProgramError({ message: `n8n could not be set up: ${String(cause).slice(0, 2_000)}` })
  })
  const { pid } = yield* run({
    file: node24,
    args: [program, "start"],
    env,
    cwd: place.home,
    log: place.log,
    ready: `http://127.0.0.1:${place.port}/healthz/readiness`,
    patienceMillis: 120_000
  })
  const url = `http://127.0.0.1:${place.port}/webhook/bench`
  // It says that it is ready before it has its workflows. A body without a currency is filtered out.
  yield* Effect.retry(post(url, {}), { times: 240, schedule: Schedule.spaced("500 millis") })
  return { url, pid }
})
