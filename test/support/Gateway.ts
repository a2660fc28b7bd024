import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Exit, Redacted, Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { type BulkOf, kindsOf } from "@tidegate/model/BulkOperation"
import { newId, prefixes } from "@tidegate/model/Ids"
import { type Table, tables } from "../../packages/storage/src/Tables.ts"
import type { AnyResource } from "@tidegate/resources/Resource"
import { hashToken, loadSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { newApiKey, replaceSecrets, signingSecrets } from "@tidegate/storage/teams/ProjectSecrets"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import { GatewayProcess, usualSettings } from "./GatewayProcess.ts"
import { freshDatabase } from "../postgres.ts"
import { eventually, NotReached, patience } from "./Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import type {
  Answered,
  Connection,
  Destination,
  DestinationConfig,
  Rules,
  Sent,
  Source,
  SourceConfig,
  Trace
} from "./Contract.ts"
import { DatabaseLink, type LinkOptions } from "./DatabaseLink.ts"
import { query } from "./sql.ts"
import type { Target } from "./Target.ts"

/**
 * A value without a type in the contract: an answer with any status, or a row of any statement. A test reads its members
 * unchecked.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type Body = any

export interface ApiAnswer {
  readonly status: number
  readonly body: Body
}

const apiKey = "gwk_contract_test_key"

/** The parts that several suites share if they use the same gateway process. */
interface Shared {
  readonly process: GatewayProcess
  readonly databaseUrl: string
  readonly home: string
}

/** The functions of a gateway that no other suite uses. */
interface Own {
  /** Its connection to the database. */
  readonly link: DatabaseLink | null
  readonly scope: Scope.Closeable
}

/**
 * One gateway process with all roles, as one team sees it. With `start`, the suite has the process to itself, with a database
 * connection that it can cut. With `forTeam`, the suite is one of several teams that use the process one after the other, and
 * must not change the other data in the database.
 */
export class Gateway {
  readonly key: string
  readonly team: string
  readonly #process: GatewayProcess
  readonly #databaseUrl: string
  readonly #home: string
  readonly #own: Own | null
  #names = 0

  private constructor(
    { databaseUrl, home, process }: Shared,
    { key, team }: { readonly key: string; readonly team: string },
    own: Own | null
  ) {
    this.key = key
    this.team = team
    this.#process = process
    this.#databaseUrl = databaseUrl
    this.#home = home
    this.#own = own
  }

  /**
   * `settings`: environment variables in addition to those of every suite, or instead of them. `options`: what is between it and its
   * database; null: nothing. A link belongs to this process, so whatever occupies this process delays the gateway's statements.
   */
  static async start(
    settings: Readonly<Record<string, string>> = {},
    options: LinkOptions | null = null
  ): Promise<Gateway> {
    const scope = Scope.makeUnsafe()
    const { folder, url } = await Effect.runPromise(
      Effect.all({ folder: temporaryFolder, url: freshDatabase }).pipe(Scope.provide(scope))
    )
    const databaseUrl = Redacted.value(url)
    const link = options === null ? null : await DatabaseLink.to(databaseUrl, options)
    const process = await GatewayProcess.make("gateway", "all", folder, {
      ...usualSettings(folder, apiKey),
      DATABASE_URL: link?.url ?? databaseUrl,
      ...settings
    })
    await process.start()
    return new Gateway({ process, databaseUrl, home: folder }, { key: apiKey, team: demoTeam }, { link, scope })
  }

  /** The same process as a new team sees it. The data of other teams is not visible. */
  async forTeam(): Promise<Gateway> {
    const [team, key] = [newId(prefixes.team, Date.now()), newApiKey()]
    await this.sql("insert into teams (id, name, created_at) values ($1, $1, now())", [team])
    await this.#stored(replaceSecrets(team, { api_key: key }))
    return new Gateway(
      { process: this.#process, databaseUrl: this.#databaseUrl, home: this.#home },
      { key, team },
      null
    )
  }

  /** The parts that a suite may use only if no other suite uses the gateway. */
  #owned(): Own {
    if (this.#own !== null) return this.#own
    throw new Error(
      "This suite shares its gateway. It needs one of its own: import { ownIt as it } from support/it.ts."
    )
  }

  get link(): DatabaseLink {
    const { link } = this.#owned()
    if (link !== null) return link
    throw new Error(
      "This suite cannot cut its gateway from the database. Its `it` has to be extended: isLinked, with the scope of a file, is true."
    )
  }

  get databaseUrl(): string {
    this.#owned()
    return this.#databaseUrl
  }

  get runs(): boolean {
    return this.#process.pid !== null
  }

  get port(): number {
    return this.#process.port
  }

  get origin(): string {
    return this.#process.origin
  }

  get pid(): number {
    this.#owned()
    return this.#process.pid!
  }

  /**
   * Ends the process, and starts it again on the same port, database and home. A suite may also do this to the gateway that it shares, because the
   * suites of a worker run one after the other.
   */
  async restart(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    await this.#process.end(signal)
    await this.#process.start()
  }

  async close(): Promise<void> {
    const { link, scope } = this.#owned()
    if (this.runs) await this.#process.end("SIGTERM")
    await link?.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }

  /** Calls the control API (default credential: the key). Returns the answer, whatever its status. */
  async call(method: string, path: string, body?: unknown, credential = this.key): Promise<ApiAnswer> {
    const response = await fetch(`${this.origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patience)
    })
    const text = await response.text()
    return { status: response.status, body: text === "" ? null : JSON.parse(text) }
  }

  /** Calls the control API and requires success. Returns the body with the contract's type. */
  async api<const Method extends string, const Path extends string>(
    method: Method,
    path: Path,
    body?: Sent<Method, Path>
  ): Promise<Answered<Method, Path>> {
    const answer = await this.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body as Answered<Method, Path>
  }

  /** A name that is unique in this team. */
  name(prefix: string): string {
    return `${prefix}-${++this.#names}`
  }

  source(config: SourceConfig = {}): Promise<Source> {
    return this.api("POST", "/sources", { name: this.name("source"), config })
  }

  destination(config: DestinationConfig, type = "HTTP"): Promise<Destination> {
    return this.api("POST", "/destinations", { name: this.name("destination"), type, config })
  }

  connection(
    source: Pick<Source, "id">,
    destination: Pick<Destination, "id">,
    rules: Rules = [],
    more: object = {}
  ): Promise<Connection> {
    return this.api("POST", "/connections", {
      name: this.name("connection"),
      source_id: source.id,
      destination_id: destination.id,
      rules,
      ...more
    })
  }

  /** Makes a source connected to `target`. */
  async route(
    target: Target,
    options: {
      readonly source?: SourceConfig
      readonly destination?: DestinationConfig
      readonly rules?: Rules
    } = {}
  ): Promise<{ readonly source: Source; readonly destination: Destination; readonly connection: Connection }> {
    const source = await this.source(options.source)
    const destination = await this.destination({ url: target.origin, ...options.destination })
    return { source, destination, connection: await this.connection(source, destination, options.rules) }
  }

  /**
   * Waits until `read` returns a value, or until that value is `good`: for results that come after the sender's answer. A failure
   * names the gateway's last warnings, because they usually have the cause.
   */
  eventually<A>(
    what: string,
    read: () => Promise<A | null | undefined>,
    good: (value: A) => boolean = () => true
  ): Promise<A> {
    return eventually(what, read, good).catch(async (error: unknown) => {
      if (error instanceof NotReached) error.message += await this.#lastWarnings()
      throw error
    })
  }

  async #lastWarnings(): Promise<string> {
    const lines = (await readFile(join(this.#home, "gateway.log"), "utf8")).split("\n")
    const warnings = lines.filter((line) => /"level":"(WARN|ERROR|FATAL)"/.test(line)).slice(-10)
    return `\nThe last warnings of its gateway: ${warnings.join("\n").slice(-4_000) || "none"}`
  }

  /** Executes a statement in the database and returns its rows. */
  sql(statement: string, parameters: ReadonlyArray<unknown> = []): Promise<ReadonlyArray<Body>> {
    return query(this.#databaseUrl, statement, parameters)
  }

  /** Everything that its processes have logged so far, for all suites that share it. */
  logged(): Promise<string> {
    return readFile(join(this.#home, "gateway.log"), "utf8")
  }

  /** The trace of a request, once `decisions` connections have routed or ignored it. */
  traced(requestId: string, decisions = 1): Promise<Trace> {
    return this.eventually(`${decisions} connections have decided about ${requestId}`, async () => {
      const trace = await this.api("GET", `/requests/${requestId}/trace`)
      // A trace is made from several reads: the request may be older than the rows that its counters count, so both are compared.
      const decided = trace.request.events_count + trace.request.ignored_count
      return Math.min(decided, trace.counts.events + trace.counts.ignored_events) < decisions ? null : trace
    })
  }

  /** Waits until no work is left: everything that is due within a minute has been routed, delivered and recorded. */
  async settled(): Promise<void> {
    this.#owned()
    await this.eventually("nothing is under way", async () => {
      const [{ count }] = await this.sql(
        `select (select count(*) from pending_routes) +
           (select count(*) from deliveries where due_at < now() + interval '1 minute') as count`
      )
      return Number(count) === 0 ? true : null
    })
  }

  /** The stored requests of a source, oldest first. */
  requests(sourceId: string): Promise<ReadonlyArray<Body>> {
    return this.sql("select * from requests where source_id = $1 order by id", [sourceId])
  }

  /** Makes a bulk operation in a shard that no runner owns, so that it never proceeds. */
  async heldOperation(of: BulkOf): Promise<string> {
    const id = newId(prefixes.bulkOperation, Date.now())
    await this.sql(
      `insert into bulk_operations (id, team_id, type, filter, shard, created_at)
      values ($1, $2, $3, jsonb_build_object('from', '2026-01-01T00:00:00.000Z', 'to', '2026-01-01T00:00:00.000Z'), 0, now())`,
      [id, this.team, kindsOf[of][0]]
    )
    return id
  }

  /** The secret that signs the team's deliveries. No API returns it, so it is read with the gateway's own keys. */
  async signingSecret(): Promise<string> {
    const [current] = await this.#stored(signingSecrets(this.team))
    return Redacted.value(current!.secret)
  }

  /** Runs the gateway's own storage code with its database and keys. */
  #stored<A, E>(work: Effect.Effect<A, E, PgClient.PgClient | SqlClient.SqlClient | Secrets>): Promise<A> {
    const home = this.#home
    return Effect.runPromise(
      Effect.gen(function* () {
        const keys = yield* loadSecretKeys(home)
        return yield* Effect.provide(work, Secrets.layer({ keys }))
      }).pipe(Effect.provide([PgClient.layer({ url: Redacted.make(this.#databaseUrl) }), NodeServices.layer]))
    )
  }

  /**
   * The token of a session of a new user with this role in the team, written directly to the database. Null: the user is no
   * member.
   */
  async session(role: "owner" | "member" | null, team: string = this.team): Promise<string> {
    const [user, token] = [`usr-${randomBytes(8).toString("hex")}`, `ses_${randomBytes(32).toString("hex")}`]
    await this.sql(
      `insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
        values ($1, 'https://issuer.test', $1, $1 || '@example.com', true, $1, now(), now())`,
      [user]
    )
    if (role !== null) {
      await this.sql("insert into memberships values ($1, $2, $3, now())", [team, user, role])
    }
    await this.sql("insert into sessions values ($1, $2, $3, now(), now() + interval '1 hour')", [
      hashToken(token),
      user,
      team
    ])
    return token
  }

  /** A credential that may write resources of this kind: the key, or the session of an owner if keys may not. */
  writer({ permissions: { edit } = {} }: AnyResource): Promise<string> {
    return typeof edit === "object" && !edit.teamKey ? this.session("owner") : Promise.resolve(this.key)
  }

  /** The number of rows of each table and a hash of their content. */
  async state(tables: ReadonlyArray<string> = allTables): Promise<ReadonlyArray<TableState>> {
    this.#owned()
    return this.sql(
      tables
        .map(
          (table) =>
            `select '${table}' as name, count(*)::int as rows, md5(coalesce(string_agg(t::text, chr(10) order by t::text), '')) as hash from ${table === "rollups" ? counts : table} t`
        )
        .join(" union all ")
        // Without this, the order of the union is undefined.
        .concat(" order by name")
    )
  }
}

/** The content of a table at one time. */
export interface TableState {
  readonly name: string
  readonly rows: number
  readonly hash: string
}

/** Decisions about keys are written to these tables a second after the calls. */
const writtenLater = new Set(["key_audit", "project_api_keys"])

/**
 * The tables of teams' data, which a call or a request can change. Tables that change after the call are left out: those with the
 * uses of keys, and those that only add up existing counts.
 */
export const allTables: ReadonlyArray<string> = Object.entries<Table>(tables).flatMap(([name, { kind, team }]) =>
  team === null || kind === "gathered" || writtenLater.has(name) ? [] : [name]
)

const counts = "(select key_id, measure, minute, team_id, sum(count) as count from counted group by 1, 2, 3, 4)"
