import { type ChildProcess, spawn } from "node:child_process"
import { createWriteStream } from "node:fs"
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { bundled } from "./Bundle.ts"
import { freePort } from "./Ports.ts"
import { patience, sleep, waitUntil } from "./Waiting.ts"

export type Role = "all" | "edge" | "runner"

const equalChildren = new URL("equalChildren.ts", import.meta.url).href

/** The gateway's program in a checkout of the project. */
export const programIn = (checkout: string): string => join(checkout, "apps/gateway/src/main.ts")

/** All running processes. They are killed when the test process ends, however it ends. */
const living = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of living) child.kill("SIGKILL")
})

/** One process of the gateway. It keeps its name, port and settings over restarts. */
export class GatewayProcess {
  /** The program of the next start: this version of the gateway, or another one. */
  program: string
  readonly #thisVersion: string
  readonly name: string
  readonly role: Role
  readonly port: number
  readonly #environment: NodeJS.ProcessEnv
  readonly #log: string
  #child: ChildProcess | null = null
  #mayEnd = false
  #ends: Array<string> = []

  private constructor(options: {
    readonly name: string
    readonly role: Role
    readonly port: number
    readonly environment: NodeJS.ProcessEnv
    readonly log: string
    readonly program: string
  }) {
    this.program = options.program
    this.#thisVersion = options.program
    this.name = options.name
    this.role = options.role
    this.port = options.port
    this.#environment = options.environment
    this.#log = options.log
  }

  static async make(
    name: string,
    role: Role,
    folder: string,
    settings: Readonly<Record<string, string>>
  ): Promise<GatewayProcess> {
    const port = await freePort()
    return new GatewayProcess({
      name,
      role,
      port,
      log: join(folder, `${name}.log`),
      program: await bundled("main"),
      environment: {
        ...withoutSettings(),
        ...settings,
        TIDEGATE_ROLE: role,
        PORT: String(port),
        ...(role === "edge" ? {} : { TIDEGATE_RUNNER_PORT: String(await freePort()) })
      }
    })
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The unexpected ends of the process since the last call. */
  takeEnds(): ReadonlyArray<string> {
    const ends = this.#ends
    this.#ends = []
    return ends
  }

  /** Its next life runs this version. */
  update(): void {
    this.program = this.#thisVersion
  }

  /** Null if it does not run. */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  /** Starts it; completes when it reports that it is ready. */
  async start(): Promise<void> {
    this.spawn()
    await this.ready()
  }

  /** Starts it and does not wait. */
  spawn(): void {
    if (this.#child !== null) throw new Error(`${this.name} runs already`)
    const log = createWriteStream(this.#log, { flags: "a" })
    const child = spawn(process.execPath, [`--import=${equalChildren}`, this.program], {
      // Compiled code is kept by its path: that of a checkout which goes with the test would stay for nothing.
      env: { ...this.#environment, ...(this.program === this.#thisVersion ? {} : { NODE_DISABLE_COMPILE_CACHE: "1" }) },
      stdio: ["ignore", "pipe", "pipe"]
    })
    log.write(`--- ${new Date().toISOString()} pid ${child.pid}\n`)
    child.stdout.pipe(log, { end: false })
    child.stderr.pipe(log, { end: false })
    living.add(child)
    this.#child = child
    this.#mayEnd = false
    child.once("exit", (code, signal) => {
      living.delete(child)
      const how = `${new Date().toISOString()} pid ${child.pid} ended: ${signal ?? `exit code ${code}`}`
      log.write(`--- ${how}\n`)
      if (!this.#mayEnd) this.#ends.push(`${this.name} ${how}`)
      if (this.#child === child) this.#child = null
    })
    // The last output of a process arrives after its end.
    child.once("close", () => log.end())
  }

  async ready(): Promise<void> {
    await waitUntil(
      `${this.name} is ready`,
      async () => {
        // A process that a test has ended may be started again meanwhile. A process that has ended by itself is not started again.
        if (this.#child === null && !this.#mayEnd) return true
        return (await fetch(`${this.origin}/readyz`, { signal: AbortSignal.timeout(10_000) })).ok
      },
      { patienceMs: 2 * patience, everyMs: 50 }
    )
    if (this.#child === null) throw new Error(`${this.name} has ended before it was ready:\n${await this.#lastLines()}`)
  }

  /** The end of its log: the file is removed with the test, so a failure has to quote it. */
  async #lastLines(): Promise<string> {
    await sleep(500)
    return (await readFile(this.#log, "utf8")).slice(-4_000)
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Sends a signal that ends it; completes when it has ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#mayEnd = true
    this.signal(signal)
    await waitUntil(`${this.name} ends by ${signal}`, () => this.#child === null)
  }
}

/** The settings of every gateway in tests. Loopback addresses are allowed, because the targets are on this machine. */
export const usualSettings = (home: string, apiKey: string) => ({
  TIDEGATE_HOME: home,
  TIDEGATE_API_KEY: apiKey,
  TIDEGATE_EGRESS_ALLOW: "127.0.0.0/8"
})

/**
 * The same for processes that share a new home in `folder`. Rate limits of the API are off, because tests call as fast as they
 * can. All processes hold shards: a suite about standbys sets `TIDEGATE_STANDBY`.
 */
export const clusterSettings = async (folder: string, apiKey: string) => {
  const home = join(folder, "home")
  await mkdir(home, { recursive: true })
  return { ...usualSettings(home, apiKey), TIDEGATE_API_RATE_LIMIT: "0", TIDEGATE_STANDBY: "off" }
}

/** The environment without the gateway's variables: the caller's settings must not apply to tests. */
export const withoutSettings = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(TIDEGATE_.*|OTEL_.*|DATABASE_URL|PORT|HOST|PUBLIC_URL|NODE_OPTIONS|VITEST.*)$/.test(name)
    )
  )
