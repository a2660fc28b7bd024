import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { newId, prefixes } from "@tidegate/model/Ids"
import {
  maxPerMinute,
  maxSamples,
  systemEventOf,
  type SystemEventBody,
  type SystemEventType
} from "@tidegate/model/SystemEvents"
import { systemEventHeader, systemType } from "@tidegate/model/SystemSource"
import { type Replay, type Replayed, type Routing, storeReplays } from "../bulk/Replays.ts"
import * as Columns from "../journal/Columns.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { type Facts, merged } from "./Notices.ts"

/** Notices that one transaction makes requests of. */
const atOnce = 100
/** How much later (ms) a notice is processed if its team has already got the maximum number. */
const putOffMs = 15_000

interface Due {
  readonly team_id: string
  readonly type: SystemEventType
  readonly subject_id: string
  readonly facts: Facts
  readonly reported: string | null
  readonly emitted_at: Date | null
  /** The name of the subject; null: it is deleted. */
  readonly name: string | null
  /** The system source of the team; null: it has none, or it is disabled. */
  readonly source_id: string | null
}

interface IssueOf {
  readonly destination_id: string
  readonly error_code: string
  readonly status: string
  readonly count: number
  readonly event_ids: ReadonlyArray<string>
  readonly opened_at: Date
  readonly last_seen_at: Date
  readonly resolved_at: Date | null
}

interface Told {
  readonly type: SystemEventType
  readonly facts: Facts
  readonly reported: string | null
}

const factsOf = (issues: ReadonlyArray<IssueOf>): Facts | null =>
  issues.reduce<Facts | null>(
    (facts, issue) =>
      merged(facts, {
        count: issue.count,
        codes: [issue.error_code],
        samples: issue.event_ids.slice(0, maxSamples),
        first: issue.opened_at.toISOString(),
        last: issue.last_seen_at.toISOString()
      }),
    null
  )

/** What to tell the team about a destination. Null: the team knows the state already. `issues`: the newest come last. */
const healthOf = ({ emitted_at, reported }: Due, issues: ReadonlyArray<IssueOf>): Told | null => {
  const failing = factsOf(issues.filter(({ status }) => status !== "resolved"))
  if (failing !== null) {
    return reported === "failing" ? null : { type: "destination.failing", facts: failing, reported: "failing" }
  }
  if (reported !== "failing") return null
  const since = emitted_at?.getTime() ?? 0
  const resolved = factsOf(issues.filter(({ resolved_at }) => (resolved_at?.getTime() ?? 0) >= since))
  return resolved === null ? null : { type: "destination.recovered", facts: resolved, reported: "recovered" }
}

const requestOf = (
  { name, subject_id, team_id }: Due,
  { facts, type }: Told,
  source_id: string,
  mark: string,
  now: number
): Replay => {
  const id = newId(prefixes.request, now)
  const body: SystemEventBody = {
    type,
    created_at: new Date(now).toISOString(),
    team_id,
    subject: { type: systemEventOf(type).subject, id: subject_id, name: name ?? "" },
    data: {
      count: facts.count,
      error_codes: facts.codes,
      sample_ids: facts.samples,
      first_seen_at: facts.first,
      last_seen_at: facts.last,
      ...(facts.expiry === undefined ? {} : { expires_at: facts.expiry.at, hours_before: facts.expiry.hours })
    }
  }
  return {
    id,
    team_id,
    source_id,
    message: {
      method: "POST",
      path: "/",
      query: "",
      headers: { "content-type": "application/json", [systemEventHeader]: type, [loopHeader]: mark },
      body: Buffer.from(JSON.stringify(body), "utf8")
    },
    presented: null,
    presentedOf: id,
    verified: true,
    original_ip: null,
    external_id: null,
    retry: null,
    isSystem: true
  }
}

/**
 * Makes requests from the notices that are due. The requests and the state of the notices are stored in one transaction, so each notice is sent once.
 * `markOf`: the loop mark of a team's system events. To be called in a transaction, by one process at a time.
 */
export const tellDue = Effect.fnUntraced(function* (
  routing: Routing,
  markOf: (teamId: string) => string,
  now: number
): Effect.fn.Return<
  { readonly replayed: ReadonlyArray<Replayed>; readonly more: boolean },
  SqlError.SqlError,
  SqlClient.SqlClient | Secrets
> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const due = yield* sql<Due>`
    select n.team_id, n.type, n.subject_id, n.facts, n.reported, n.emitted_at,
      coalesce((select name from destinations where id = n.subject_id and team_id = n.team_id and deleted_at is null),
        (select name from sources where id = n.subject_id and team_id = n.team_id and deleted_at is null),
        (select name from workflows where id = n.subject_id and team_id = n.team_id and deleted_at is null),
        (select name from project_api_keys where id = n.subject_id and team_id = n.team_id and status <> 'revoked'),
        case when n.subject_id = n.team_id then 'Former signing secret' end) as name,
      (select id from sources where type = ${systemType} and team_id = n.team_id and deleted_at is null and disabled_at is null)
        as source_id
    from system_notices n where n.due_at <= ${at} order by n.due_at, n.subject_id limit ${atOnce} for update`
  if (due.length === 0) return { replayed: [], more: false }
  const teams = Columns.text([...new Set(due.map(({ team_id }) => team_id))])
  const counts = yield* sql<{ team_id: string; told: number }>`
    select team_id, count(*)::int4 as told from system_notices
    where team_id = any(${teams}) and emitted_at > ${new Date(now - 60_000)} group by team_id`
  const told = new Map(counts.map((row) => [row.team_id, row.told]))
  const failing = due.filter(({ type }) => type === "destination.failing").map(({ subject_id }) => subject_id)
  const issues = yield* sql<IssueOf>`
    select destination_id, error_code, status, count::float8 as count, event_ids, opened_at, last_seen_at, resolved_at from issues
    where destination_id = any(${Columns.text(failing)}) order by last_seen_at`

  const made: Array<{ readonly of: Due; readonly as: Told; readonly request: Replay }> = []
  const late: Array<Due> = []
  const dropped: Array<Due> = []
  for (const one of due) {
    const { facts, name, source_id, subject_id, team_id, type } = one
    const as =
      type === "destination.failing"
        ? healthOf(
            one,
            issues.filter((issue) => issue.destination_id === subject_id)
          )
        : { type, facts, reported: one.reported }
    const before = told.get(team_id) ?? 0
    if (as === null || source_id === null || name === null) dropped.push(one)
    else if (before >= maxPerMinute) late.push(one)
    else {
      told.set(team_id, before + 1)
      made.push({ of: one, as, request: requestOf(one, as, source_id, markOf(team_id), now) })
    }
  }
  const stored =
    made.length === 0
      ? []
      : yield* storeReplays(
          made.map(({ request }) => request),
          routing
        )

  const keys = (of: ReadonlyArray<Due>) =>
    sql`unnest(${Columns.text(of.map(({ subject_id }) => subject_id))}, ${Columns.text(of.map(({ type }) => type))}) as k (subject_id, type)`
  yield* sql`
    update system_notices n set due_at = null, facts = '{}', emitted_at = ${at}, reported = k.reported
    from unnest(${Columns.text(made.map(({ of }) => of.subject_id))}, ${Columns.text(made.map(({ of }) => of.type))},
      ${Columns.text(made.map(({ as }) => as.reported))}) as k (subject_id, type, reported)
    where n.subject_id = k.subject_id and n.type = k.type`
  yield* sql`
    update system_notices n set due_at = null, facts = '{}' from ${keys(dropped)}
    where n.subject_id = k.subject_id and n.type = k.type`
  yield* sql`
    update system_notices n set due_at = ${new Date(now + putOffMs)} from ${keys(late)}
    where n.subject_id = k.subject_id and n.type = k.type`
  return { replayed: stored.filter((one) => typeof one === "object"), more: due.length === atOnce }
})
