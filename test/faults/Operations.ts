import { idBound, prefixes } from "../../packages/model/src/Ids.ts"
import { now, sleep } from "../support/Waiting.ts"
import type { Cluster } from "./Cluster.ts"
import type { Findings } from "./Findings.ts"
import type { Postgres } from "./Postgres.ts"
import type { Connection, Route } from "./Routes.ts"

/** The maximum number of bulk retries in a round, the time between two of them, and the time between two reads (ms). */
const maxRetries = 4
const retryEveryMs = 3_000
const readEveryMs = 250

const day = "from=now-24h&to=now"
const reads = [
  "/events?limit=50",
  "/requests?limit=50",
  "/destinations",
  "/events/count",
  "/events/count?status=HOLD,QUEUED",
  "/requests/count",
  `/metrics/events?${day}`,
  "/metrics/events?from=now-5m&to=now&granularity=1s",
  `/metrics/requests?${day}&granularity=1m`
]

/** The work of operators during a round: lists, counts and metrics are read all the time, and delivered events are retried in bulk. */
export class Operations {
  readonly #cluster: Cluster
  /** Events with an ordering key are not retried, because this test does not examine how their retries affect other events. */
  readonly #connections: ReadonlyArray<Connection>
  #isOver = true
  #work: Promise<unknown> = Promise.resolve()
  #rounds = 0
  answered = 0
  readonly refusals: Array<string> = []

  constructor(cluster: Cluster, routes: ReadonlyArray<Route>) {
    this.#cluster = cluster
    this.#connections = routes.flatMap(({ connections }) => connections).filter(({ order }) => order === null)
  }

  start(): void {
    this.#isOver = false
    this.answered = 0
    this.refusals.length = 0
    this.#rounds++
    this.#work = Promise.all([this.#read(), this.#retry(new Date().toISOString())])
  }

  /** Makes no more calls. Completes when every call has been answered or given up. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#work
  }

  async #read(): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      await this.#ask(() => this.#cluster.api("GET", reads[n % reads.length]!))
      await sleep(readEveryMs)
    }
  }

  /** Each is for another connection, so that no more events are retried than were sent. */
  async #retry(from: string): Promise<void> {
    for (let n = 0; n < maxRetries && this.#connections.length > 0; n++) {
      const next = now() + retryEveryMs
      while (!this.#isOver && now() < next) await sleep(50)
      if (this.#isOver) return
      const { id } = this.#connections[(this.#rounds * maxRetries + n) % this.#connections.length]!
      await this.#ask(() =>
        this.#cluster.api("POST", "/events/bulk_operations", { connection_id: id, status: "SUCCESSFUL", from })
      )
    }
  }

  /** While processes and databases are killed a call may be broken off or answered with 503. */
  async #ask(call: () => Promise<unknown>): Promise<void> {
    try {
      await call()
      this.answered++
    } catch (error) {
      const status = /: (\d{3}) /.exec(String(error))?.[1]
      if (status !== undefined && status !== "503") this.refusals.push(String(error).slice(0, 300))
    }
  }
}

/** Whether no bulk operation is under way. */
export const areOver = async (postgres: Postgres): Promise<boolean> => {
  const [row] = await postgres.query(
    "select not exists (select from bulk_operations where finished_at is null) as over"
  )
  return row?.["over"] === true
}

/** If a success was recorded this shortly before the end of an operation's window, the operation may or may not have seen it. */
const sameMomentMs = 500

/**
 * Checks that every bulk operation since then has ended, has made one event for each of its targets, and has missed none. Its window ends when the
 * call was made, however late its owner received it. If connections were paused, the operation could not retry all targets, and has counted the
 * others as failed. Returns the number of events that the operations made.
 */
export const check = async (
  findings: Findings,
  postgres: Postgres,
  operations: Operations,
  { paused = false, since }: { readonly paused?: boolean | undefined; readonly since: number }
): Promise<number> => {
  for (const refusal of operations.refusals) findings.broke("operators get an answer, or 503", refusal)
  if (operations.answered === 0) findings.broke("operators get an answer, or 503", "no call was answered")
  const rows = await postgres.query(
    `select o.id, o.status, o.total_count::int4 as total, o.queued_count::int4 as queued, o.failed_count::int4 as failed,
      (select count(*)::int4 from events e where e.retry_operation_id = o.id and e.id >= $2) as made,
      (select count(distinct e.retry_parent_event_id)::int4 from events e where e.retry_operation_id = o.id and e.id >= $2) as parents,
      (select count(*)::int4 from bulk_targets t where t.operation_id = o.id) as remaining,
      (select count(*)::int4 from events e
        where e.connection_id = o.filter->'connection_id'->>0 and e.id >= $2 and e.state = 'SUCCESSFUL'
          and e.created_at >= (o.filter->>'from')::timestamptz + $3 * interval '1 ms'
          and e.updated_at < (o.filter->>'to')::timestamptz - $3 * interval '1 ms' and e.retry_operation_id is distinct from o.id
          and not exists (select from events r where r.retry_operation_id = o.id and r.retry_parent_event_id = e.id)) as missing
    from bulk_operations o where o.id >= $1`,
    [idBound(prefixes.bulkOperation, since), idBound(prefixes.event, since), sameMomentMs]
  )
  for (const row of rows) {
    const { failed, made, missing, parents, queued, remaining, status, total } = row as Record<string, unknown>
    const couldNot = paused ? Number(failed) : 0
    if (
      status !== (couldNot > 0 && queued === 0 ? "FAILED" : "COMPLETED") ||
      failed !== couldNot ||
      remaining !== 0 ||
      Number(missing) > couldNot ||
      [made, parents, queued].some((count) => Number(count) + couldNot !== total)
    ) {
      findings.broke("a bulk retry makes one event of each", JSON.stringify(row))
    }
  }
  return rows.reduce((sum, { made }) => sum + Number(made), 0)
}
