import { type ChildProcess, spawn } from "node:child_process"
import { Pool } from "undici"
import { bundled } from "./Bundle.ts"
import { usualSettings, withoutSettings } from "./GatewayProcess.ts"
import { freePort } from "./Ports.ts"
import { patience, waitUntil } from "./Waiting.ts"

const apiKey = "gwk_supervised_test_key"

/** A gateway of several processes, as `npm start` starts it with TIDEGATE_PROCESSES. */
export class Supervised {
  readonly child: ChildProcess
  readonly origin: string
  said = ""
  complained = ""
  readonly ended: Promise<number | null>
  readonly #over = new AbortController()

  private constructor(child: ChildProcess, port: number) {
    this.child = child
    this.origin = `http://127.0.0.1:${port}`
    child.stdout!.on("data", (data: Buffer) => (this.said += data.toString()))
    child.stderr!.on("data", (data: Buffer) => (this.complained += data.toString()))
    this.ended = new Promise((resolve) => void child.once("close", (code) => resolve(code)))
  }

  /** Starts it and does not wait. */
  static async spawn(home: string, settings: Readonly<Record<string, string>>): Promise<Supervised> {
    const port = Number(settings["PORT"] ?? (await freePort()))
    const env = { ...withoutSettings(), ...usualSettings(home, apiKey), PORT: String(port), ...settings }
    const child = spawn(process.execPath, [await bundled("start")], { env, stdio: ["ignore", "pipe", "pipe"] })
    return new Supervised(child, port)
  }

  /** The ids of the processes of the system that have become ready, in their order. */
  get readyPids(): ReadonlyArray<number> {
    return [...this.said.matchAll(/process \d+ is ready \(pid (\d+)\)/g)].map(([, pid]) => Number(pid))
  }

  ready(count: number): Promise<number> {
    return waitUntil(
      `${count} processes have become ready`,
      () => this.child.exitCode !== null || this.readyPids.length >= count,
      { patienceMs: 3 * patience, seen: () => [this.said.slice(-1_000), this.complained.slice(-1_000)] }
    )
  }

  async call(
    method: string,
    path: string,
    body?: unknown
  ): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${this.origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json", connection: "close" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    return { status: response.status, text: await response.text() }
  }

  async source(): Promise<string> {
    return (JSON.parse((await this.call("POST", "/v1/sources", { name: "orders" })).text) as { id: string }).id
  }

  /** Senders that keep their connections, and senders that open one for each request, until `stop`, or until all of it is closed. */
  send(source: string): {
    readonly accepted: Array<string>
    readonly failed: Array<string>
    readonly stop: () => Promise<void>
  } {
    const [accepted, failed]: [Array<string>, Array<string>] = [[], []]
    const ending = new AbortController()
    const until = AbortSignal.any([ending.signal, this.#over.signal])
    const once = async (pool: Pool): Promise<void> => {
      try {
        const { body, statusCode } = await pool.request({ method: "POST", path: `/e/${source}`, body: "{}" })
        const text = await body.text()
        if (statusCode === 200) accepted.push((JSON.parse(text) as { request_id: string }).request_id)
        else failed.push(`${statusCode} ${text}`)
      } catch (error) {
        failed.push(String(error))
      }
    }
    const kept = Array.from({ length: 8 }, async () => {
      const pool = new Pool(this.origin, { connections: 1 })
      while (!until.aborted) await once(pool)
      await pool.close()
    })
    const fresh = Array.from({ length: 2 }, async () => {
      while (!until.aborted) {
        const pool = new Pool(this.origin, { connections: 1 })
        await once(pool)
        await pool.close()
      }
    })
    return {
      accepted,
      failed,
      stop: async () => {
        ending.abort()
        await Promise.all([...kept, ...fresh])
      }
    }
  }

  async close(): Promise<void> {
    this.#over.abort()
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM")
    await this.ended
  }
}
