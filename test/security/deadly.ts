import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Exit, Redacted, Scope } from "effect"
import { expect } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { Gateways } from "../support/Gateways.ts"
import { waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** Longer than a body that is written down while it is worked at. */
export const heavy = "x".repeat(70_000)

/** A process with a small heap, that work of its own ends. */
export class Deadly {
  readonly gateways: Gateways<"all">
  readonly #scope: Scope.Closeable
  readonly #target: Server
  /** Ends the process as soon as somebody calls the target with this in the body. */
  poison: string | null = null
  /** The target answers nobody before it has been called with that: what came before is under way then. */
  isHolding = false
  /** What the target answers. */
  status = 200
  /** Bodies that the target was called with. */
  readonly bodies: Array<string> = []
  #killed = ""

  private constructor(gateways: Gateways<"all">, scope: Scope.Closeable, target: Server) {
    this.gateways = gateways
    this.#scope = scope
    this.#target = target
  }

  static async start(heapMb = 512): Promise<Deadly> {
    const scope = Scope.makeUnsafe()
    const { folder, url } = await Effect.runPromise(
      Effect.all({ folder: temporaryFolder, url: freshDatabase }).pipe(Scope.provide(scope))
    )
    const target = createServer()
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve))
    const settings = { NODE_OPTIONS: `--max-old-space-size=${heapMb}` }
    const gateways = await Gateways.start(folder, Redacted.value(url), { all: "all" }, settings)
    const deadly = new Deadly(gateways, scope, target)
    target.on("request", (request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        const body = Buffer.concat(parts).toString()
        deadly.bodies.push(body)
        if (deadly.poison !== null && body.includes(deadly.poison)) {
          deadly.isHolding = false
          deadly.process.signal("SIGKILL")
        } else if (!deadly.isHolding) response.writeHead(deadly.status).end("{}")
      })
    })
    return deadly
  }

  async close(): Promise<void> {
    await this.gateways.close()
    this.#target.close()
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }

  get process() {
    return this.gateways.process("all")
  }

  get targetUrl(): string {
    return `http://127.0.0.1:${(this.#target.address() as AddressInfo).port}/`
  }

  api(method: string, path: string, body?: object): Promise<{ readonly id: string }> {
    return this.gateways.api("all", method, path as never, body as never)
  }

  async post(source: string, body: object): Promise<void> {
    const { status } = await this.gateways.call("all", "POST", `/e/${source}`, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    expect(status).toBe(200)
  }

  /** The process may have ended of it before it has answered; it has been stored then. */
  async postDeadly(source: string, body: object): Promise<void> {
    await this.post(source, body).catch(() => {})
  }

  /** A source whose only connection has these rules, to the target. */
  async route(name: string, rules: ReadonlyArray<object> = []): Promise<string> {
    const source = await this.api("POST", "/sources", { name, type: "WEBHOOK" })
    const config = { url: this.targetUrl }
    const destination = await this.api("POST", "/destinations", { name, type: "HTTP", config })
    await this.api("POST", "/connections", { name, source_id: source.id, destination_id: destination.id, rules })
    return source.id
  }

  /** Starts the process again whenever it has ended, until this holds; answers how often it has. */
  async livesUntil(what: string, holds: () => Promise<boolean>): Promise<number> {
    let ends = 0
    await waitUntil(
      what,
      async () => {
        if (this.process.pid === null) {
          ends++
          this.process.spawn()
        }
        return await holds()
      },
      { patienceMs: 400_000, everyMs: 10 }
    )
    this.process.takeEnds()
    if (this.process.pid === null) this.process.spawn()
    await this.process.ready()
    return ends
  }

  /** Ends the process when it has this work in hand, and from the second time on alone: as if the work had. */
  async killsAt(kind: string, id: string): Promise<void> {
    const [row] = await this.gateways.query(
      `select process from work_in_hand where kind = $1 and id = $2 and process not in ('', $3) and (ends = 0 or alone)`,
      [kind, id, this.#killed]
    )
    if (row === undefined) return
    this.#killed = String(row["process"])
    this.process.signal("SIGKILL")
  }
}
