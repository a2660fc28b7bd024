import { Pool } from "undici"
import type { Answered, Sent } from "./Contract.ts"
import { clusterSettings, GatewayProcess, type Role } from "./GatewayProcess.ts"
import { query, type Row } from "./sql.ts"

const apiKey = "gwk_cluster_test_key"

/** The answer that a sender received. */
export interface Answer {
  readonly status: number
  readonly body: string
}

/** Several processes of the gateway on one database, by name. */
export class Gateways<Name extends string> {
  readonly #processes: ReadonlyMap<Name, GatewayProcess>
  readonly #pools = new Map<Name, Pool>()
  readonly #url: string

  private constructor(url: string, processes: ReadonlyMap<Name, GatewayProcess>) {
    this.#url = url
    this.#processes = processes
    for (const [name, { origin }] of processes) this.#pools.set(name, new Pool(origin, { connections: 64 }))
  }

  /** Starts them at once, as a deployment does; completes when all are ready. Their home and logs are in `folder`. */
  static async start<Name extends string>(
    folder: string,
    databaseUrl: string,
    roles: Readonly<Record<Name, Role>>,
    more: Readonly<Record<string, string>> = {}
  ): Promise<Gateways<Name>> {
    const settings = { ...(await clusterSettings(folder, apiKey)), DATABASE_URL: databaseUrl, ...more }
    const processes = new Map<Name, GatewayProcess>()
    for (const [name, role] of Object.entries(roles) as Array<[Name, Role]>) {
      processes.set(name, await GatewayProcess.make(name, role, folder, settings))
    }
    await Promise.all([...processes.values()].map((process) => process.start()))
    return new Gateways(databaseUrl, processes)
  }

  process(name: Name): GatewayProcess {
    return this.#processes.get(name)!
  }

  get names(): ReadonlyArray<Name> {
    return [...this.#processes.keys()]
  }

  /** Starts those that a test has ended, and returns itself. */
  async everyRunning(): Promise<this> {
    const ended = [...this.#processes.values()].filter(({ pid }) => pid === null)
    await Promise.all(ended.map((process) => process.start()))
    return this
  }

  /** Calls the control API and requires success. Returns the body with the contract's type. */
  async api<const Method extends string, const Path extends string>(
    name: Name,
    method: Method,
    path: Path,
    body?: Sent<Method, Path>
  ): Promise<Answered<Method, Path>> {
    const answer = await this.call(name, method, `/v1${path}`, {
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { "content-type": "application/json" })
      },
      body: body === undefined ? null : JSON.stringify(body)
    })
    if (answer.status >= 300) throw new Error(`${method} ${path} at ${name}: ${answer.status} ${answer.body}`)
    return JSON.parse(answer.body) as Answered<Method, Path>
  }

  /** Sends any request to one process. */
  async call(
    name: Name,
    method: string,
    path: string,
    options: { readonly headers?: Record<string, string>; readonly body?: string | null } = {}
  ): Promise<Answer> {
    const { body, statusCode } = await this.#pools.get(name)!.request({
      method,
      path,
      headers: options.headers ?? {},
      body: options.body ?? null
    })
    return { status: statusCode, body: await body.text() }
  }

  /** The answer of `GET /readyz`. */
  async readiness(
    name: Name
  ): Promise<{ readonly ok: boolean; readonly role: Role; readonly shards: number; readonly standby: boolean }> {
    return JSON.parse((await this.call(name, "GET", "/readyz")).body) as {
      ok: boolean
      role: Role
      shards: number
      standby: boolean
    }
  }

  query(statement: string, parameters?: ReadonlyArray<unknown>): Promise<ReadonlyArray<Row>> {
    return query(this.#url, statement, parameters)
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()))
    await Promise.all([...this.#processes.values()].map((process) => process.end("SIGKILL")))
  }
}
