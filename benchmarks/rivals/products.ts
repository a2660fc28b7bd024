import { mkdirSync, mkdtempSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { noOwnRedis, noRedis, Redis } from "../../test/support/Redis.ts"
import { freePort } from "../../test/support/Ports.ts"
import * as Gateway from "../src/Gateway.ts"
import { graphs } from "../src/WorkflowGraphs.ts"
import { install } from "./install.ts"
import { ProgramError, post, run } from "./Program.ts"
import { startN8n } from "./n8n.ts"

/** What a product is started with, anew in each round. */
export interface Place {
  /** An empty folder. */
  readonly home: string
  /** The URL of an empty database on the server that all share, and the server's process. */
  readonly databaseUrl: string
  readonly postgres: number
  /** Where each body has to arrive. */
  readonly target: string
  readonly log: string
}

/** A product that runs. */
export interface Running {
  /** Where bodies are posted. */
  readonly url: string
  /** All its processes, without their children. */
  readonly processes: ReadonlyArray<number>
}

export interface Product {
  readonly name: string
  readonly load: "events" | "flow"
  /** What is certain when it answers. */
  readonly answers: string
  /** What it keeps of a delivery. */
  readonly keeps: string
  readonly start: (place: Place) => Effect.Effect<Running, { readonly message: string }, Scope.Scope>
}

const programs = join(import.meta.dirname, "programs")
const gatewayEntry = join(import.meta.dirname, "../../apps/gateway/dist/main.mjs")
const modules = join(import.meta.dirname, "node_modules")

const port = Effect.tryPromise({
  try: freePort,
  catch: (cause) => new ProgramError({ message: String(cause) })
})

const installed = Effect.try({
  try: () => install(".", "bullmq"),
  catch: (cause) => new ProgramError({ message: String(cause) })
})

const gateway = Effect.fnUntraced(function* ({ databaseUrl, home, log }: Place) {
  return yield* Gateway.start({ entry: gatewayEntry, databaseUrl, home, log, execArgv: [], collector: null })
})

const redis = (folder: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => {
        if (noOwnRedis) throw new Error(noRedis ?? "the server of REDIS_URL is not for us to set up")
        return Redis.start(["--appendonly", "yes", "--appendfsync", "always", "--dir", folder])
      },
      catch: (cause) => new ProgramError({ message: String(cause) })
    }),
    (server) => Effect.promise(() => server.stop())
  )

/** Restate's server and a Node process with the handlers. */
const restate = (handler: "relay" | "flow"): Product["start"] =>
  Effect.fnUntraced(function* ({ home, log, target }) {
    yield* installed
    const [ingress, admin, node, handlers] = [yield* port, yield* port, yield* port, yield* port]
    const server = yield* run({
      file: join(modules, `@restatedev/restate-server-linux-${process.arch}/bin/restate-server`),
      args: ["--no-logo", "--node-name", "bench", "--base-dir", home, "--listen-mode", "tcp"],
      env: {
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_IP: "127.0.0.1",
        RESTATE_BIND_PORT: String(node),
        RESTATE_DISABLE_TELEMETRY: "true"
      },
      log,
      ready: `http://127.0.0.1:${admin}/health`
    })
    const program = yield* run({
      file: process.execPath,
      args: [join(programs, "restate.mjs")],
      env: { PORT: String(handlers), TARGET_URL: target },
      log,
      // It speaks HTTP/2 only; Restate waits for it when it is told of it.
      ready: `http://127.0.0.1:${admin}/health`
    })
    yield* Effect.retry(post(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${handlers}` }), {
      times: 20
    })
    return {
      url: `http://127.0.0.1:${ingress}/bench/${handler}/send`,
      processes: [server.pid, program.pid]
    }
  })

/** A program of ours on a library of theirs. */
const program = Effect.fnUntraced(function* (name: string, { log, target }: Place, env: Record<string, string>) {
  yield* installed
  const at = yield* port
  const { pid } = yield* run({
    file: process.execPath,
    args: [join(programs, `${name}.mjs`)],
    env: { PORT: String(at), TARGET_URL: target, ...env },
    log,
    ready: `http://127.0.0.1:${at}/`
  })
  return { url: `http://127.0.0.1:${at}/`, pid }
})

const graph = graphs.find(({ name }) => name === "five pure steps and a destination")!

export const products: ReadonlyArray<Product> = [
  {
    name: "tidegate",
    load: "events",
    answers: "request committed in PostgreSQL",
    keeps: "request, event and each attempt, in PostgreSQL",
    start: Effect.fnUntraced(function* (place) {
      const { pid, route } = yield* gateway(place)
      const url = yield* route({ name: "bench", destinations: [{ url: place.target }], rules: [] })
      return { url, processes: [pid, place.postgres] }
    })
  },
  {
    name: "bullmq",
    load: "events",
    answers: "job in Redis, its log synced to the disk",
    keeps: "the last 1,000 done jobs",
    start: Effect.fnUntraced(function* (place) {
      const folder = join(place.home, "redis")
      mkdirSync(folder)
      const server = yield* redis(folder)
      const { pid, url } = yield* program("bullmq", place, { REDIS_URL: server.url })
      return { url, processes: [pid, server.pid] }
    })
  },
  {
    name: "restate",
    load: "events",
    answers: "invocation in Restate's log",
    keeps: "invocation and journal for a day",
    start: restate("relay")
  },
  {
    name: "tidegate:flow",
    load: "flow",
    answers: "request and run committed in PostgreSQL",
    keeps: "request, run, each step with input and output, in PostgreSQL",
    start: Effect.fnUntraced(function* (place) {
      const { create, origin, pid } = yield* gateway(place)
      const source = yield* create("sources", { name: "bench", type: "WEBHOOK" })
      const destination = yield* create("destinations", { name: "bench", type: "HTTP", config: { url: place.target } })
      const { edges, steps } = graph
      yield* create("workflows", { name: "bench", source_id: source, steps: steps(destination), edges })
      return { url: `${origin}/e/${source}`, processes: [pid, place.postgres] }
    })
  },
  {
    name: "restate:flow",
    load: "flow",
    answers: "invocation in Restate's log",
    keeps: "invocation and journal with each step's result for a day",
    start: restate("flow")
  },
  {
    name: "dbos:flow",
    load: "flow",
    answers: "workflow in PostgreSQL",
    keeps: "workflow and each step's result, in PostgreSQL",
    start: Effect.fnUntraced(function* (place) {
      const { pid, url } = yield* program("dbos", place, { DATABASE_URL: place.databaseUrl })
      return { url, processes: [pid, place.postgres] }
    })
  },
  {
    name: "n8n:flow",
    load: "flow",
    answers: "nothing is stored yet",
    keeps: "each run with the data of its nodes, in PostgreSQL",
    start: Effect.fnUntraced(function* (place) {
      const { pid, url } = yield* startN8n({ ...place, home: mkdtempSync(join(place.home, "n8n-")), port: yield* port })
      return { url, processes: [pid, place.postgres] }
    })
  }
]
