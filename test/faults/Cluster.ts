import type { Answered, Sent } from "../support/Contract.ts"
import { clusterSettings, GatewayProcess } from "../support/GatewayProcess.ts"
import { embedded, type Postgres } from "./Postgres.ts"
import { type Rig, type Surrounded, surroundings } from "./Rig.ts"
import { now, sleep } from "../support/Waiting.ts"

/**
 * `single`: one process with all roles and the embedded PostgreSQL. `host`: two processes with all roles. The second one is on standby while the
 * first one works, and senders and operators call the second one. All others: one edge process and two runners, in the environment of that name.
 */
export type Topology = "single" | Surrounded

export type ProcessName = "edge" | "runner-1" | "runner-2" | "all"

const apiKey = "gwk_fault_test_key"

/** The process that senders and operators call, if it is not the edge. */
const receivers: { readonly [topology in Topology]?: ProcessName } = { single: "all", host: "runner-2" }

/** A running gateway, and the functions that cause faults in it. */
export class Cluster {
  readonly topology: Topology
  readonly postgres: Postgres
  readonly #processes: ReadonlyMap<ProcessName, GatewayProcess>
  readonly #rig: Rig

  private constructor(topology: Topology, rig: Rig, processes: ReadonlyMap<ProcessName, GatewayProcess>) {
    this.topology = topology
    this.#rig = rig
    this.postgres = rig.postgres
    this.#processes = processes
  }

  /** Starts everything in an empty folder, with this version or with the program of another one. Completes when all processes are ready. */
  static async start(topology: Topology, folder: string, program: string | null = null): Promise<Cluster> {
    const settings = await clusterSettings(folder, apiKey)
    if (topology === "single") {
      const all = await GatewayProcess.make("all", "all", folder, settings)
      if (program !== null) all.program = program
      try {
        await all.start()
      } catch (cause) {
        await all.end("SIGKILL")
        throw cause
      }
      const postgres = await embedded(settings.TIDEGATE_HOME)
      return new Cluster(topology, { postgres, close: postgres.close }, new Map([["all", all]]))
    }
    const rig: Rig = await surroundings[topology].build(folder)
    const shared = { ...settings, DATABASE_URL: rig.postgres.url, ...rig.all }
    const role = topology === "host" ? "all" : "runner"
    const processes = new Map<ProcessName, GatewayProcess>()
    if (topology !== "host") processes.set("edge", await GatewayProcess.make("edge", "edge", folder, shared))
    processes.set("runner-1", await GatewayProcess.make("runner-1", role, folder, { ...shared, ...rig.runner1 }))
    processes.set("runner-2", await GatewayProcess.make("runner-2", role, folder, shared))
    const cluster = new Cluster(topology, rig, processes)
    const first = program ?? rig.program
    try {
      const [one, ...others] = processes.values()
      if (first !== undefined) for (const process of processes.values()) process.program = first
      // It makes the schema and the keys.
      await one!.start()
      await Promise.all(others.map((process) => process.start()))
    } catch (cause) {
      await cluster.close()
      throw cause
    }
    return cluster
  }

  /** What the environment of this cluster offers for faults. */
  part<Name extends "link" | "clock" | "redis" | "disk" | "promote">(name: Name): NonNullable<Rig[Name]> {
    const part = this.#rig[name]
    if (part === undefined) throw new Error(`the topology ${this.topology} has no ${name}`)
    return part
  }

  /** Where senders and operators find it. */
  get origin(): string {
    return this.#process(receivers[this.topology] ?? "edge").origin
  }

  /** The process id of one that runs. */
  pid(name: ProcessName): number {
    const { pid } = this.#process(name)
    if (pid === null) throw new Error(`${name} does not run`)
    return pid
  }

  /** The processes that have ended by themselves since the last call. */
  takeEnds(): ReadonlyArray<string> {
    return [...this.#processes.values()].flatMap((process) => process.takeEnds())
  }

  async start(name: ProcessName): Promise<void> {
    await this.#process(name).start()
  }

  /** Starts every process that does not run; completes when all are ready. */
  async startAll(): Promise<void> {
    for (const process of this.#processes.values()) if (process.pid === null) process.spawn()
    await Promise.all([...this.#processes.values()].map((process) => process.ready()))
  }

  /** SIGTERM: it finishes what it has begun. */
  async stop(name: ProcessName): Promise<void> {
    await this.#process(name).end("SIGTERM")
  }

  /** Ends it by SIGTERM, and starts this version in its place. */
  async update(name: ProcessName): Promise<void> {
    await this.stop(name)
    this.#process(name).update()
    await this.start(name)
  }

  /** SIGKILL: it has no say in it. */
  async kill(...names: ReadonlyArray<ProcessName>): Promise<void> {
    await Promise.all(names.map((name) => this.#process(name).end("SIGKILL")))
  }

  /** SIGSTOP: the process is frozen, and does not notice. */
  freeze(name: ProcessName): void {
    this.#process(name).signal("SIGSTOP")
  }

  /** SIGCONT. */
  thaw(name: ProcessName): void {
    this.#process(name).signal("SIGCONT")
  }

  /** Ends the database sessions of all processes again and again for `forMs`. */
  async terminateBackends(forMs: number): Promise<number> {
    const until = now() + forMs
    let ended = 0
    while (now() < until) {
      const rows = await this.postgres.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'tidegate%'"
      )
      ended += rows.length
      await sleep(100)
    }
    return ended
  }

  /** Kills PostgreSQL each time that it is running again, for `forMs`. */
  async keepPostgresDown(forMs: number): Promise<void> {
    const until = now() + forMs
    while (now() < until) {
      this.postgres.kill()
      await sleep(10)
    }
  }

  /** A call of the control API that has to succeed; its body, as the contract has it. */
  async api<const Method extends string, const Path extends string>(
    method: Method,
    path: Path,
    body?: Sent<Method, Path>
  ): Promise<Answered<Method, Path>> {
    const response = await fetch(`${this.origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000)
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as Answered<Method, Path>
  }

  /** Ends everything. Returns the processes that did not end after SIGTERM and had to be killed. */
  async close(): Promise<ReadonlyArray<ProcessName>> {
    const stuck: Array<ProcessName> = []
    const end = async (name: ProcessName, process: GatewayProcess): Promise<void> => {
      process.signal("SIGCONT")
      if (process.pid === null) return
      try {
        await process.end("SIGTERM")
      } catch {
        stuck.push(name)
        await process.end("SIGKILL")
      }
    }
    await Promise.all(Array.from(this.#processes, ([name, process]) => end(name, process)))
    await this.#rig.close()
    return stuck
  }

  #process(name: ProcessName): GatewayProcess {
    const process = this.#processes.get(name)
    if (process === undefined) throw new Error(`there is no ${name} in the topology ${this.topology}`)
    return process
  }
}
