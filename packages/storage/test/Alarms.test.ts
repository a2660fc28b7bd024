import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { maxPerMinute, SystemEventBody } from "@tidegate/model/SystemEvents"
import { type Accepted, Journal, type Recorded } from "@tidegate/storage/Journal"
import { raiseAlarms } from "../src/alarms/Alarms.ts"
import { noteGrowingQueues } from "../src/alarms/GrowingQueues.ts"
import { raiseAlert } from "../src/channels/Alerts.ts"
import { storeReplay } from "../src/bulk/Replays.ts"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Sources } from "../src/control/Sources.ts"
import { weighRoutedSource } from "../src/delivery/RoutedSource.ts"
import type { AttemptRecord } from "../src/journal/AttemptStatement.ts"
import { runCommit } from "../src/journal/RunStatement.ts"
import { attemptRecord } from "./attempts.ts"
import * as ControlPlane from "./controlPlane.ts"
import { requestRecord } from "./requests.ts"

const { connectionFields, destinationFields, sourceFields, unique } = ControlPlane

const minute = 60_000
const start = Date.now()

const world = Journal.layer.pipe(Layer.provideMerge(ControlPlane.layerOf({ connections: 6 })))

const routing = { shardOf: () => 1, orderingKeyOf: () => null }
const look = (now: number) => raiseAlarms(routing, (team) => `mark of ${team}`, now)

const decode = Schema.decodeUnknownSync(SystemEventBody)

/** A team with a route, and with a system source unless it has none. */
const makeTeam = Effect.fnUntraced(function* ({ listens = true } = {}) {
  const sql = yield* SqlClient.SqlClient
  const team = unique("tm_alarms")
  yield* sql`insert into teams (id, name) values (${team}, ${team})`
  const sources = yield* Sources
  const source = yield* sources.create(team, newId(prefixes.source, start), sourceFields())
  const destination = yield* (yield* Destinations).create(team, newId(prefixes.destination, start), destinationFields())
  const connections = yield* Connections
  const connect = (source_id: string, destination_id = destination.id) =>
    connections.create(team, newId(prefixes.connection, start), connectionFields({ source_id, destination_id }))
  const connection = yield* connect(source.id)
  const system = listens
    ? yield* sources.create(team, newId(prefixes.source, start), sourceFields({ type: "SYSTEM" }))
    : null
  return { team, source, destination, connection, system, connect }
})

type Team = Effect.Success<ReturnType<typeof makeTeam>>

const failed = {
  successful: false,
  responseStatus: 503,
  errorCode: "BAD_RESPONSE",
  failureMessage: "HTTP 503"
} as const

/** Stores a request, routed by the current settings. */
const accepted = Effect.fnUntraced(function* (
  given: Parameters<typeof requestRecord>[0],
  to: Parameters<typeof requestRecord>[1]
) {
  const journal = yield* Journal
  const request = requestRecord({ ...given, version: (yield* ControlPlane.versionOf(given.sourceId)) ?? 0 }, to)
  const done = yield* Effect.callback<Accepted>((resume) =>
    journal.accept(request, (done) => resume(Effect.succeed(done)))
  )
  expect(done).toBe("committed")
  return request
})

/** A request of the team at a time, and the attempt of its event. */
const attempt = Effect.fnUntraced(function* (
  { connection, destination, source, team }: Pick<Team, "connection" | "destination" | "source" | "team">,
  at: number,
  given: Partial<AttemptRecord> = failed
) {
  const journal = yield* Journal
  const request = yield* accepted(
    { teamId: team, sourceId: source.id, ingestedAt: at },
    { connection: connection.id, destination: destination.id }
  )
  const eventId = request.events[0]!.id
  const record = attemptRecord({
    id: newId(prefixes.attempt, at),
    teamId: team,
    eventId,
    requestId: request.id,
    connectionId: connection.id,
    sourceId: source.id,
    destinationId: destination.id,
    deliveredAt: at,
    respondedAt: at,
    finishedAt: at,
    ...given
  })
  yield* Effect.callback<Recorded>((resume) => journal.record(record, true, (done) => resume(Effect.succeed(done))))
  return eventId
})

/** The system events of a team, in order. */
const toldOf = Effect.fnUntraced(function* ({ team }: Pick<Team, "team">) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ body: Uint8Array; headers: string }>`
    select r.body, r.headers, r.verified from requests r join sources s on s.id = r.source_id
    where r.team_id = ${team} and s.type = 'SYSTEM' and r.headers::jsonb ? 'gateway-loop' order by r.created_at, r.id`
  return rows.map(({ body, headers }) =>
    Object.assign(
      { headers: JSON.parse(headers) as Record<string, string> },
      decode(JSON.parse(Buffer.from(body).toString()))
    )
  )
})
const typesOf = (team: Pick<Team, "team">) => Effect.map(toldOf(team), (told) => told.map(({ type }) => type).sort())

const issuesOf = Effect.fnUntraced(function* ({ team }: Pick<Team, "team">) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ error_code: string; status: string; count: number; event_ids: ReadonlyArray<string> }>`
    select error_code, status, count::float8 as count, event_ids from issues where team_id = ${team} order by error_code`
})

layer(world, { excludeTestServices: true })("Alarms", (it) => {
  it.effect("A failed delivery opens an issue, and its team is told once by two looks at the same time", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const first = yield* attempt(one, start)
      const second = yield* attempt(one, start + 1, { ...failed, retryAt: start + minute })
      yield* Effect.all([look(start + 2), look(start + 2)], { concurrency: 2 })
      yield* look(start + 3)
      expect(yield* issuesOf(one)).toEqual([
        { error_code: "BAD_RESPONSE", status: "open", count: 2, event_ids: [second, first] }
      ])
      const told = yield* toldOf(one)
      expect(told.map(({ type }) => type).sort()).toEqual(["destination.failing", "event.failed"])
      const failing = told.find(({ type }) => type === "destination.failing")!
      expect(failing.subject).toEqual({ type: "destination", id: one.destination.id, name: one.destination.name })
      expect(failing.data).toMatchObject({ count: 2, error_codes: ["BAD_RESPONSE"], sample_ids: [second, first] })
      expect(failing.headers).toMatchObject({
        "gateway-loop": `mark of ${one.team}`,
        "x-gateway-system-event": "destination.failing"
      })
      // Only one of the two will not be tried again.
      expect(told.find(({ type }) => type === "event.failed")!.data).toMatchObject({ count: 1, sample_ids: [first] })
    })
  )

  it.effect("An issue is resolved when deliveries succeed again, and opens again with the next failure", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const retried = { ...failed, retryAt: start + minute }
      yield* attempt(one, start, retried)
      yield* look(start)
      // A success before a minute has passed since the failure does not resolve it yet.
      yield* attempt(one, start + 1_000, {})
      yield* look(start + 2_000)
      expect(yield* issuesOf(one)).toMatchObject([{ status: "open" }])
      yield* look(start + minute)
      expect(yield* issuesOf(one)).toMatchObject([{ status: "resolved" }])
      expect(yield* typesOf(one)).toEqual(["destination.failing", "destination.recovered"])
      // It fails again within the window of the first event, so the team is told when the window is over.
      yield* attempt(one, start + 2 * minute, retried)
      yield* look(start + 2 * minute)
      expect(yield* issuesOf(one)).toMatchObject([{ status: "open", count: 1 }])
      expect(yield* typesOf(one)).toEqual(["destination.failing", "destination.recovered"])
      yield* look(start + 7 * minute)
      expect(yield* typesOf(one)).toEqual(["destination.failing", "destination.failing", "destination.recovered"])
    })
  )

  it.effect("A destination that fails on and off within the window is not mentioned again", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const retried = { ...failed, retryAt: start + minute }
      for (const at of [0, 1.5, 3]) {
        yield* attempt(one, start + at * minute, retried)
        yield* look(start + at * minute)
        yield* attempt(one, start + at * minute + 1, {})
        yield* look(start + (at + 1) * minute + 1)
      }
      yield* look(start + 10 * minute)
      expect(yield* typesOf(one)).toEqual(["destination.failing", "destination.recovered"])
    })
  )

  it.effect("An issue stays open while only other destinations succeed, and ends with its destination", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const other = yield* (yield* Destinations).create(
        one.team,
        newId(prefixes.destination, start),
        destinationFields()
      )
      const connection = yield* one.connect(one.source.id, other.id)
      yield* attempt(one, start)
      yield* attempt({ ...one, destination: other, connection }, start + 1_000, {})
      yield* look(start)
      yield* look(start + 2 * minute)
      expect(yield* issuesOf(one)).toMatchObject([{ status: "open" }])
      yield* (yield* Destinations).delete(one.team, one.destination.id)
      yield* look(start + 3 * minute)
      expect(yield* issuesOf(one)).toMatchObject([{ status: "resolved" }])
      // Nobody is told of a destination that is gone.
      expect(yield* typesOf(one)).toEqual(["destination.failing", "event.failed"])
    })
  )

  it.effect("What follows from a system event makes no occurrence: by its source, or by the mark of its chain", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const fed = yield* one.connect(one.system!.id)
      yield* attempt({ ...one, source: one.system!, connection: fed }, start)
      yield* attempt(one, start, { ...failed, silent: true })
      yield* look(start)
      expect(yield* issuesOf(one)).toEqual([])
      expect(yield* toldOf(one)).toEqual([])
      // The same destination is not deaf to other events.
      yield* attempt(one, start + 1)
      yield* look(start + 1)
      expect(yield* issuesOf(one)).toMatchObject([{ count: 1 }])
    })
  )

  it.effect("A team without an enabled system source has issues, but gets no system events", () =>
    Effect.gen(function* () {
      const none = yield* makeTeam({ listens: false })
      const off = yield* makeTeam()
      yield* (yield* Sources).switch(off.team, off.system!.id, "disable")
      for (const team of [none, off]) yield* attempt(team, start)
      yield* look(start)
      for (const team of [none, off]) {
        expect(yield* issuesOf(team)).toMatchObject([{ status: "open" }])
        expect(yield* toldOf(team)).toEqual([])
      }
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select from system_notices where team_id = any(${[none.team, off.team]})`).toEqual([])
    })
  )

  it.effect("Requests that cannot be verified are told of once in a window, with their number", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const rejected = { status: "rejected", rejectionCause: "SOURCE_AUTH_FAILED", events: [] } as const
      const refuse = (at: number, silent = false) =>
        accepted(
          { teamId: one.team, sourceId: one.source.id, ingestedAt: at, silent, ...rejected },
          { connection: one.connection.id, destination: one.destination.id }
        )
      yield* Effect.all(
        Array.from({ length: 20 }, (_, i) => refuse(start + i)),
        { concurrency: "unbounded" }
      )
      yield* refuse(start, true)
      yield* look(start + 20)
      const [told, ...more] = yield* toldOf(one)
      expect(more).toEqual([])
      expect(told).toMatchObject({
        type: "source.unverified",
        subject: { type: "source", id: one.source.id },
        data: { count: 20, error_codes: ["SOURCE_AUTH_FAILED"] }
      })
      expect(told!.data.sample_ids.length).toBeLessThanOrEqual(10)
      for (const at of [1, 2]) {
        yield* refuse(start + at * minute)
        yield* look(start + at * minute)
      }
      expect(yield* toldOf(one)).toHaveLength(1)
      yield* look(start + 15 * minute + 20)
      expect((yield* toldOf(one)).map(({ data }) => data.count)).toEqual([20, 2])
    })
  )

  it.effect("A team gets a limited number of system events in a minute, and the others later", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const quiet = yield* makeTeam()
      const sql = yield* SqlClient.SqlClient
      const many = maxPerMinute + 5
      for (let i = 0; i < many; i++) {
        const source = yield* (yield* Sources).create(one.team, newId(prefixes.source, start), sourceFields())
        yield* sql`insert into occurrences (team_id, kind, subject_id, code, count, first_at, last_at)
          values (${one.team}, 'channel', ${source.id}, 'channel_stop_failed', 1, now(), now())`
      }
      yield* attempt(quiet, start)
      yield* look(start)
      yield* look(start)
      expect(yield* toldOf(one)).toHaveLength(maxPerMinute)
      expect(yield* typesOf(quiet)).toEqual(["destination.failing", "event.failed"])
      yield* look(start + minute + 15_000)
      expect(yield* toldOf(one)).toHaveLength(many)
    })
  )

  it.effect("A channel's alert is told of when it opens, and not when it goes on", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const sql = yield* SqlClient.SqlClient
      const alert = {
        team_id: one.team,
        source_id: one.source.id,
        code: "channel_renewal_failed",
        message: "HTTP 503"
      } as const
      yield* sql.withTransaction(raiseAlert(alert, start))
      yield* sql.withTransaction(raiseAlert(alert, start + 1))
      yield* look(start)
      expect(yield* toldOf(one)).toMatchObject([
        { type: "channel.failing", data: { count: 1, error_codes: ["channel_renewal_failed"] } }
      ])
    })
  )

  it.effect("A queue is growing when its oldest event has been due for ten minutes, unless system events fill it", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const sql = yield* SqlClient.SqlClient
      const wait = Effect.fnUntraced(function* (of: Pick<Team, "connection" | "source">) {
        yield* accepted(
          { teamId: one.team, sourceId: of.source.id, ingestedAt: start },
          { connection: of.connection.id, destination: one.destination.id }
        )
      })
      const note = (at: number) =>
        Effect.andThen(
          noteGrowingQueues([1], () => 1, at),
          look(at)
        )
      yield* wait({ source: one.system!, connection: yield* one.connect(one.system!.id) })
      yield* note(start + 11 * minute)
      expect(yield* toldOf(one)).toEqual([])
      yield* wait(one)
      yield* note(start + 9 * minute)
      expect(yield* toldOf(one)).toEqual([])
      yield* note(start + 11 * minute)
      yield* note(start + 12 * minute)
      expect(yield* toldOf(one)).toMatchObject([{ type: "queue.growing", data: { count: 2 } }])
      yield* sql`delete from deliveries where team_id = ${one.team}`
    })
  )

  it.effect(
    "The runs of a workflow that fail are told of, but not those that follow from a system event or are cancelled",
    () =>
      Effect.gen(function* () {
        const one = yield* makeTeam()
        const sql = yield* SqlClient.SqlClient
        const workflow = unique("wfl")
        yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at, source_id)
        values (${workflow}, ${one.team}, 'Orders', 'active', 1, '[]', '[]', '', now(), now(), ${one.source.id})`
        const end = Effect.fnUntraced(function* (source: string, given: object) {
          const id = newId(prefixes.workflowRun, start)
          yield* sql`insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
          values (${id}, ${one.team}, ${workflow}, 'req', ${source}, 1, 'running', 0, now(), now())`
          const { parameters, statement } = runCommit([
            {
              id,
              teamId: one.team,
              part: 1,
              partId: newId(prefixes.workflowPart, start),
              at: start,
              status: "failed",
              outcome: "failed",
              attempts: 1,
              succeeded: 0,
              failed: 1,
              skipped: 0,
              running: 0,
              kept: 0,
              error: { code: "TIMEOUT", message: "too late", stepId: null },
              startedAt: start,
              finishedAt: start,
              dueAt: null,
              moves: false,
              carried: null,
              steps: "{}",
              resources: null,
              outputs: null,
              previews: null,
              ...given
            }
          ])
          yield* sql.unsafe(statement, parameters)
          return id
        })
        yield* end(one.system!.id, {})
        yield* end(one.source.id, { silent: true })
        yield* end(one.source.id, { outcome: "cancelled" })
        const run = yield* end(one.source.id, {})
        yield* look(start)
        expect(yield* toldOf(one)).toMatchObject([
          {
            type: "workflow.run_failed",
            subject: { type: "workflow", id: workflow, name: "Orders" },
            data: { count: 1, error_codes: ["TIMEOUT"], sample_ids: [run] }
          }
        ])
      })
  )

  it.effect("A team has one system source; nobody can send to it or delete it", () =>
    Effect.gen(function* () {
      const one = yield* makeTeam()
      const sources = yield* Sources
      const again = sources.create(one.team, newId(prefixes.source, start), sourceFields({ type: "SYSTEM" }))
      expect(yield* Effect.flip(again)).toMatchObject({
        code: "RESOURCE_ALREADY_EXISTS",
        data: { id: one.system!.id }
      })
      expect(yield* weighRoutedSource(one.system!.id)).toBeNull()
      expect(yield* Effect.flip(sources.delete(one.team, one.system!.id))).toMatchObject({ code: "RESOURCE_IN_USE" })
      const id = newId(prefixes.request, start)
      const published = storeReplay(
        {
          team_id: one.team,
          source_id: one.system!.id,
          id,
          message: { method: "POST", path: "/", query: "", headers: {}, body: Buffer.from("{}") },
          presented: null,
          presentedOf: id,
          verified: true,
          original_ip: null,
          external_id: null,
          retry: null
        },
        routing
      )
      expect(yield* Effect.flip(published)).toMatchObject({ code: "SOURCE_DISABLED" })
    })
  )
})
