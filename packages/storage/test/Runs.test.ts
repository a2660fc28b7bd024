import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { JournalSql } from "../src/Database.ts"
import { type RunTransition, runCommit } from "../src/journal/RunStatement.ts"
import { storeActionHold } from "../src/workflows/ActionHolds.ts"
import { type RunInput, insertRunInput } from "../src/workflows/RunInputs.ts"
import { dueRuns, partsOf } from "../src/workflows/Runs.ts"
import * as ControlPlane from "./controlPlane.ts"
import { Journal } from "../src/Journal.ts"
import { RunJournal } from "../src/workflows/RunJournal.ts"
import { requestRecord } from "./requests.ts"

const { createConnection, otherTeam, team } = ControlPlane

const world = Layer.mergeAll(Journal.layer, RunJournal.layer).pipe(Layer.provideMerge(ControlPlane.layer))

const workflow = newId(prefixes.workflow, Date.now())
const shard = 5

/** A request of a source, and the run that it began. */
const begun = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const journal = yield* Journal
  const at = yield* Clock.currentTimeMillis
  const connection = yield* createConnection()
  const [source] = yield* sql<{ version: bigint }>`select version from sources where id = ${connection.source_id}`
  const record = requestRecord(
    { teamId: team, sourceId: connection.source_id, version: Number(source!.version), ingestedAt: at },
    { connection: connection.id, destination: connection.destination_id }
  )
  const accepted = yield* Effect.callback<string>((resume) =>
    journal.accept(record, (done) => resume(Effect.succeed(done)))
  )
  expect(accepted).toBe("committed")
  const id = derivedId(prefixes.workflowRun, record.id, workflow)
  const when = new Date(at)
  yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
    values (${id}, ${team}, ${workflow}, ${record.id}, ${record.sourceId}, 1, 'queued', 2, ${when}, ${when})`
  yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at) values (${id}, ${team}, ${shard}, ${workflow}, ${when})`
  return id
})

const transition = (id: string, more: Partial<RunTransition> = {}): RunTransition => ({
  id,
  teamId: team,
  part: 1,
  partId: newId(prefixes.workflowPart, Date.now()),
  at: Date.now(),
  status: "succeeded",
  outcome: "completed",
  attempts: 1,
  succeeded: 2,
  failed: 0,
  skipped: 0,
  running: 0,
  kept: 0,
  error: null,
  startedAt: Date.now(),
  finishedAt: Date.now(),
  dueAt: null,
  moves: true,
  carried: null,
  steps: '{"steps":{}}',
  resources: null,
  outputs: null,
  previews: null,
  ...more
})

const commit = Effect.fnUntraced(function* (...items: ReadonlyArray<RunTransition>) {
  const sql = yield* JournalSql
  const { parameters, statement } = runCommit(items)
  const rows = yield* sql.unsafe<{ id: string }>(statement, parameters)
  return rows.map(({ id }) => id).toSorted()
})

const dueRows = (limits: Parameters<typeof dueRuns>[3]) =>
  Effect.map(dueRuns(shard, workflow, Date.now() + 1_000, limits), (due) => due!.runs)

const due = (inHand: ReadonlyArray<string> = [], limit = 100) =>
  Effect.map(dueRows({ limit, bytes: 1_000_000, inHand }), (rows) => rows.map(({ id }) => id))

/** The workflow, as it stands, with no runs. */
const forget = Effect.fnUntraced(function* (status = "active", deleted = false) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from workflow_queue`
  yield* sql`insert into workflows (id, team_id, name, source_id, status, version, steps, edges, definition_hash, created_at, updated_at, deleted_at)
    values (${workflow}, ${team}, 'one', null, ${status}, 1, '[]', '[]', '', now(), now(), ${deleted ? new Date() : null})
    on conflict (id) do update set status = excluded.status, deleted_at = excluded.deleted_at`
})

layer(world, { excludeTestServices: true })("Queue of a workflow's runs", (it) => {
  it.effect("The queue returns due runs with their requests, oldest first, without those in progress", () =>
    Effect.gen(function* () {
      yield* forget()
      const ids = [yield* begun(), yield* begun(), yield* begun()]
      const [row] = yield* dueRows({ limit: 1, bytes: 1, inHand: [] })
      expect(row).toMatchObject({ id: ids[0], team_id: team, status: "queued", parts: 0, method: "POST", path: "/" })
      expect(Buffer.from(row!.body!).toString()).toBe("body")
      expect(yield* due()).toEqual(ids)
      expect(yield* due([ids[0]!])).toEqual(ids.slice(1))
      expect(yield* dueRows({ limit: 100, bytes: 5, inHand: [] })).toHaveLength(2)
    })
  )

  it.effect("A read that begins later leaves out the runs that were due before", () =>
    Effect.gen(function* () {
      yield* forget()
      const sql = yield* SqlClient.SqlClient
      const [old, later] = [yield* begun(), yield* begun()]
      yield* sql`update workflow_queue set due_at = ${new Date(1_000)} where run_id = ${old}`
      yield* sql`update workflow_queue set due_at = ${new Date(2_000)} where run_id = ${later}`
      const since = (from: number) =>
        Effect.map(dueRows({ limit: 9, bytes: 1_000, inHand: [], from }), (rows) => rows.map(({ id }) => id))
      expect(yield* since(0)).toEqual([old, later])
      expect(yield* since(1_000)).toEqual([old, later])
      expect(yield* since(1_001)).toEqual([later])
      expect(yield* since(2_001)).toEqual([])
    })
  )

  it.effect("A run with an input of its own is due with that input, until retention removes it", () =>
    Effect.gen(function* () {
      yield* forget()
      const sql = yield* SqlClient.SqlClient
      const id = newId(prefixes.workflowRun, Date.now())
      const input: RunInput = {
        method: "PUT",
        path: "/orders",
        query: "a=1",
        headers: '{"content-type":"text/plain"}',
        body: Buffer.from("its own body"),
        ingested_at: new Date(1_700_000_000_000)
      }
      yield* insertRunInput(team, id, input)
      yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
        values (${id}, ${team}, ${workflow}, ${id}, 'src_none', 1, 'queued', 2, now(), now())`
      yield* sql`insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at) values (${id}, ${team}, ${shard}, ${workflow}, now() - interval '1 hour')`
      const requested = yield* begun()
      const [own, other] = yield* dueRows({ limit: 2, bytes: 1_000, inHand: [] })
      expect(own).toMatchObject({ ...input, id, body: expect.anything(), request_id: id, presented: null })
      expect(Buffer.from(own!.body!).toString()).toBe("its own body")
      expect(other).toMatchObject({ id: requested, method: "POST" })
      // Its bytes count as those of a request do.
      expect(yield* dueRows({ limit: 2, bytes: 12, inHand: [] })).toHaveLength(1)
      expect(yield* dueRows({ limit: 2, bytes: 13, inHand: [] })).toHaveLength(2)
      const [kept] = yield* sql<{ days: number }>`
        select (expires_at::date - now()::date)::int4 as days from workflow_inputs where run_id = ${id}`
      expect(kept).toEqual({ days: 31 })
      yield* sql`delete from workflow_inputs where run_id = ${id}`
      expect((yield* dueRows({ limit: 1, bytes: 1, inHand: [] }))[0]).toMatchObject({ id, headers: "", body: null })
    })
  )

  it.effect("A finished run is no longer in the queue, and its steps are stored", () =>
    Effect.gen(function* () {
      yield* forget()
      const sql = yield* SqlClient.SqlClient
      const [one, other] = [yield* begun(), yield* begun()]
      expect(
        yield* commit(
          transition(one),
          transition(other, { status: "failed", error: { code: "X", message: "y", stepId: "s" } })
        )
      ).toEqual([one, other].toSorted())
      expect(yield* due()).toEqual([])
      expect(yield* partsOf([one])).toEqual([{ run_id: one, part: 1, steps: '{"steps":{}}', outputs: null }])
      const [row] =
        yield* sql`select status, parts, error_code, error_step_id, finished_at is null as open from workflow_runs where id = ${other}`
      expect(row).toEqual({ status: "failed", parts: 1, error_code: "X", error_step_id: "s", open: false })
    })
  )

  it.effect("Only one of two concurrent commits for the same run is stored", () =>
    Effect.gen(function* () {
      yield* forget()
      const id = yield* begun()
      const running = { status: "running", outcome: null, finishedAt: null, dueAt: Date.now() } as const
      const answers = yield* Effect.all(
        Array.from({ length: 8 }, (_, i) => commit(transition(id, { ...running, steps: String(i) }))),
        { concurrency: "unbounded" }
      )
      expect(answers.flat()).toEqual([id])
      expect(yield* partsOf([id])).toHaveLength(1)
      expect(yield* commit(transition(id, { ...running, part: 2, dueAt: Date.now() + 60_000, carried: "{}" }))).toEqual(
        [id]
      )
      expect(yield* due()).toEqual([])
      expect(yield* commit(transition(id, { part: 3 }))).toEqual([id])
      expect((yield* partsOf([id])).map(({ part }) => part)).toEqual([1, 2, 3])
    })
  )

  it.effect("The queue follows its workflow: empty if paused or deleted, all remaining runs if disabled", () =>
    Effect.gen(function* () {
      const later = Effect.fnUntraced(function* (id: string) {
        const sql = yield* SqlClient.SqlClient
        yield* sql`update workflow_queue set due_at = now() + interval '1 day' where run_id = ${id}`
        return id
      })
      const look = dueRuns(shard, workflow, Date.now() + 1_000, { limit: 9, bytes: 1_000, inHand: [] })
      yield* forget("paused")
      const [now, then] = [yield* begun(), yield* Effect.flatMap(begun(), later)]
      expect(yield* look).toMatchObject({ running: { team_id: team, status: "paused", deleted: false }, runs: [] })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update workflows set status = 'disabled'`
      expect((yield* look)?.runs.map(({ id }) => id)).toEqual([now, then])
      yield* sql`update workflows set status = 'active'`
      expect((yield* look)?.runs.map(({ id }) => id)).toEqual([now])
      yield* sql`update workflows set deleted_at = now()`
      expect(yield* look).toMatchObject({ running: { team_id: team, status: "active", deleted: true }, runs: [] })
      yield* sql`delete from workflows`
      expect(yield* look).toBeNull()
    })
  )

  it.effect("The queue is read once with all targets that the team's actions must not call now", () =>
    Effect.gen(function* () {
      yield* forget()
      yield* begun()
      yield* begun()
      const now = Date.now()
      const look = dueRuns(shard, workflow, now + 1_000, { limit: 9, bytes: 1_000, inHand: [] })
      expect((yield* look)!.held).toEqual(new Map())
      yield* storeActionHold(team, "act_1", now + 60_000, now)
      yield* storeActionHold(team, "http https://api.example.com", now + 70_000, now)
      yield* storeActionHold(team, "act_2", now + 500, now)
      yield* storeActionHold(otherTeam, "act_3", now + 60_000, now)
      const { held, runs } = (yield* look)!
      expect(runs).toHaveLength(2)
      expect(held).toEqual(
        new Map([
          ["act_1", now + 60_000],
          ["http https://api.example.com", now + 70_000]
        ])
      )
      yield* forget("paused")
      expect((yield* look)!.held).toEqual(held)
    })
  )

  it.effect("The number of held targets of a team is limited, and expired ones make room", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = Date.now()
      const count = Effect.map(
        sql<{ n: number }>`select count(*)::int4 as n from action_holds where team_id = ${otherTeam}`,
        ([row]) => row!.n
      )
      yield* sql`delete from action_holds`
      yield* sql`insert into action_holds (team_id, target, held_until)
        select ${otherTeam}, 't' || n, ${new Date(now + 60_000)} from generate_series(1, 1000) n`
      expect(yield* storeActionHold(otherTeam, "one more", now + 60_000, now)).toBe(false)
      expect(yield* count).toBe(1_000)
      expect(yield* storeActionHold(otherTeam, "t1", now + 90_000, now)).toBe(true)
      expect(yield* storeActionHold(otherTeam, "t1", now + 80_000, now)).toBe(false)
      const [moved] = yield* sql`select held_until from action_holds where target = 't1'`
      expect(moved).toEqual({ held_until: new Date(now + 90_000) })
      expect(yield* storeActionHold(otherTeam, "one more", now + 120_000, now + 61_000)).toBe(true)
      expect(yield* count).toBe(2)
    })
  )

  it.effect(
    "A commit that the database rejects is reported as rejected and does not affect the others of its batch",
    () =>
      Effect.gen(function* () {
        yield* forget()
        const { move } = yield* RunJournal
        const ids = [yield* begun(), yield* begun(), yield* begun()]
        const all = ids.map((id, i) => transition(id, i === 1 ? { steps: "no text has a \u0000" } : {}))
        expect(yield* Effect.forEach(all, move, { concurrency: "unbounded" })).toEqual(["stored", "refused", "stored"])
        expect(yield* move(all[1]!)).toBe("refused")
        // What has no text at all cannot even be sent.
        expect(yield* move(transition(ids[1]!, { startedAt: {} as never }))).toBe("refused")
        expect(yield* due()).toEqual([ids[1]])
      })
  )

  it.effect("A postponed run is not due before its time, and is otherwise unchanged", () =>
    Effect.gen(function* () {
      yield* forget()
      const { move, putOff } = yield* RunJournal
      const id = yield* begun()
      yield* putOff(id, Date.now() + 60_000)
      expect(yield* due()).toEqual([])
      yield* putOff(id, Date.now() - 60_000)
      expect(yield* due()).toEqual([id])
      expect(yield* move(transition(id))).toBe("stored")
    })
  )
})
