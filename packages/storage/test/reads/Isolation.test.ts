import { expect, layer } from "@effect/vitest"
import { globSync } from "node:fs"
import { basename, join } from "node:path"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { resources } from "@tidegate/resources/Resources"
import * as AttemptReads from "../../src/reads/AttemptReads.ts"
import * as AlertReads from "../../src/reads/AlertReads.ts"
import * as BinReads from "../../src/reads/BinReads.ts"
import * as CapturedReads from "../../src/reads/CapturedReads.ts"
import * as ChannelReads from "../../src/channels/ChannelReads.ts"
import { feedCursor } from "../../src/reads/EventFeed.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as ExecutionReads from "../../src/reads/ExecutionReads.ts"
import * as IssueReads from "../../src/reads/IssueReads.ts"
import * as IgnoredEventReads from "../../src/reads/IgnoredEventReads.ts"
import * as MetricsReads from "../../src/reads/MetricsReads.ts"
import * as NamedReads from "../../src/reads/NamedReads.ts"
import * as ProxyExchangeReads from "../../src/reads/ProxyExchangeReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import * as RoutedRequestReads from "../../src/reads/RoutedRequestReads.ts"
import * as RunReads from "../../src/reads/RunReads.ts"
import * as SummaryReads from "../../src/reads/SummaryReads.ts"
import * as TraceReads from "../../src/reads/TraceReads.ts"
import { Actions } from "../../src/workflows/Actions.ts"
import { Connections } from "../../src/control/Connections.ts"
import { Destinations } from "../../src/control/Destinations.ts"
import { Sources } from "../../src/control/Sources.ts"
import { type Table, tables } from "../../src/Tables.ts"
import { Filters } from "../../src/control/Filters.ts"
import { Transformations } from "../../src/control/Transformations.ts"
import * as VersionReads from "../../src/reads/VersionReads.ts"
import { Workflows } from "../../src/workflows/Workflows.ts"
import { issueOf, itemSourceOf, mine, old, other, workflowOf, world } from "../everyTable.ts"
import { idOf, resourcesOf } from "../OldDays.ts"
import { anyAttempt, anyEvent, anyRequest } from "./Filters.ts"
import { listing } from "../listing.ts"

/*
 * Two teams with the same history. Whatever one of them reads, by no id, by its own or by the other's, shows nothing that
 * belongs to the other. A function of the reads that is not called here fails the test, and so does a table of teams
 * without rows of both.
 */

type Read = Effect.Effect<unknown, unknown, Layer.Success<typeof world>>
/** A read of `mine` by the ids of a team; `null`: by none. */
type Case = (ids: Ids | null) => Read

interface Ids {
  readonly source: string
  readonly destination: string
  readonly connection: string
  readonly transformation: string
  readonly filter: string
  readonly action: string
  readonly workflow: string
  readonly items: string
  /** Of the records of the n-th request. */
  readonly record: (prefix: keyof typeof prefixes, n: number) => string
}

const idsOf = (team: string): Ids => ({
  ...resourcesOf(team),
  workflow: workflowOf(team),
  items: itemSourceOf(team),
  record: (prefix, n) => sibling(prefixes[prefix], `req_${idOf(old, team, 0, n)}`)
})

const some = <A>(value: A | undefined): ReadonlyArray<A> => (value === undefined ? [] : [value])
const page = { key: "test", window: { from: "now-2d", to: "2999-01-01" }, cursor: undefined, limit: 100 }
const sub = { key: "test", cursor: undefined, limit: 100 }
const events = (ids: Ids | null): EventReads.EventFilter => ({
  ...anyEvent,
  requests: [],
  sources: some(ids?.source),
  connections: some(ids?.connection),
  destinations: some(ids?.destination)
})
const requests = (ids: Ids | null): RequestReads.RequestFilter => ({
  ...anyRequest,
  sources: some(ids?.source),
  connections: some(ids?.connection)
})
const ignored = (ids: Ids | null) => ({
  causes: [],
  requests: [],
  sources: some(ids?.source),
  connections: some(ids?.connection)
})
const anything = { ids: [], statuses: [], sources: [], connections: [], destinations: [] }
const whole = { data: true, eventSummary: true }
const req = (ids: Ids | null, n: number) => (ids ?? idsOf(mine)).record("request", n)

const series = <Measure extends string>(measures: ReadonlyArray<Measure>) => ({
  window: { from: "now-1d", to: "now" },
  granularity: "1h" as const,
  measures
})

/** What summaries tell: the ids in them are those that were asked for. */
const told = <E, R>(rows: Effect.Effect<ReadonlyArray<object>, E, R>) =>
  Effect.map(rows, (all) =>
    all.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => /count|bins/.test(name))))
  )

/** By module and function. */
const cases: Readonly<Record<string, Case>> = {
  "EventReads.list": (ids) => EventReads.list(mine, events(ids), page, { data: true }),
  "EventReads.list by status": () =>
    EventReads.list(mine, { ...events(null), statuses: ["QUEUED", "FAILED"] }, page, { data: true }),
  "EventReads.list by request": (ids) =>
    EventReads.list(mine, { ...events(null), requests: [req(ids, 6)] }, page, { data: true }),
  "EventReads.list by search": (ids) =>
    EventReads.list(mine, { ...events(null), search: `ext-${req(ids, 6).slice(4)}` }, page, { data: true }),
  "EventReads.feed": (ids) => {
    const after = feedCursor("feed", { txid: "0", entry: "", taken: 0, at: Date.now() })
    return EventReads.feed(mine, events(ids), { key: "feed", after, limit: 100 }, { data: true })
  },
  "EventReads.count": (ids) => EventReads.count(mine, events(ids), page.window),
  "EventReads.byIds": (ids) => EventReads.byIds(mine, some(ids?.record("event", 6)), [], 10),
  "EventReads.get": (ids) => EventReads.get(mine, (ids ?? idsOf(mine)).record("event", 0)),
  "EventReads.ofRequest": (ids) => EventReads.ofRequest(mine, req(ids, 6), anything, sub),
  "RequestReads.list": (ids) => RequestReads.list(mine, requests(ids), page, whole),
  "RequestReads.list by search": (ids) =>
    RequestReads.list(mine, { ...requests(null), search: `ext-${req(ids, 6).slice(4)}` }, page, whole),
  "RequestReads.count": (ids) => RequestReads.count(mine, requests(ids), page.window),
  "RequestReads.check": (ids) => RequestReads.check(mine, req(ids, 6)),
  "RequestReads.detail": (ids) => RequestReads.detail(mine, req(ids, 2)),
  "RequestReads.latestInput": (ids) => RequestReads.latestInput(mine, (ids ?? idsOf(mine)).source),
  "RoutedRequestReads.newestRouted": (ids) => RoutedRequestReads.newestRouted(mine, (ids ?? idsOf(mine)).source, 10),
  "RoutedRequestReads.routedContent": (ids) => RoutedRequestReads.routedContent(mine, req(ids, 6)),
  "RequestReads.requestBody": (ids) => RequestReads.requestBody(mine, req(ids, 6)),
  "RequestReads.requestBodySize": (ids) => RequestReads.requestBodySize(mine, req(ids, 6)),
  "RequestReads.verdict": (ids) => RequestReads.verdict(mine, req(ids, 6)),
  "AttemptReads.list": (ids) =>
    AttemptReads.list(mine, { ...anyAttempt, destinations: some(ids?.destination) }, "desc", page),
  "AttemptReads.list by connection": (ids) =>
    AttemptReads.list(mine, { ...anyAttempt, connections: some(ids?.connection) }, "desc", page),
  "AttemptReads.list by event": (ids) =>
    AttemptReads.list(mine, { ...anyAttempt, events: some(ids?.record("event", 6)) }, "asc", page),
  "AttemptReads.get": (ids) => AttemptReads.get(mine, (ids ?? idsOf(mine)).record("attempt", 6), req(ids, 6)),
  "AttemptReads.byEvents": (ids) => AttemptReads.byEvents(mine, some(ids?.record("event", 6)), 10),
  "IgnoredEventReads.ofRequest": (ids) =>
    IgnoredEventReads.ofRequest(mine, req(ids, 1), { ids: [], connections: some(ids?.connection) }, sub),
  "IgnoredEventReads.list": (ids) => IgnoredEventReads.list(mine, ignored(ids), page),
  "IgnoredEventReads.count": (ids) => IgnoredEventReads.count(mine, ignored(ids), page.window),
  "ExecutionReads.list": (ids) =>
    ExecutionReads.list(mine, (ids ?? idsOf(mine)).transformation, { logLevels: [] }, page),
  "ExecutionReads.get": (ids) => {
    const { record, transformation } = ids ?? idsOf(mine)
    return ExecutionReads.get(mine, transformation, record("execution", 0))
  },
  "ExecutionReads.ofRequest": (ids) => ExecutionReads.ofRequest(mine, req(ids, 0), 10),
  "MetricsReads.events": (ids) =>
    MetricsReads.events(mine, events(ids), series(["count", "delivered_count", "ignored_count"])),
  "MetricsReads.requests": (ids) => MetricsReads.requests(mine, requests(ids), series(["count"])),
  "SummaryReads.sources": (ids) => told(SummaryReads.sources(mine, [(ids ?? idsOf(mine)).source])),
  "SummaryReads.rates": (ids) =>
    told(Effect.map(SummaryReads.rates(mine, [(ids ?? idsOf(mine)).source]), ({ models }) => models)),
  "SummaryReads.destinations": (ids) => told(SummaryReads.destinations(mine, [(ids ?? idsOf(mine)).destination])),
  "SummaryReads.connections": (ids) => told(SummaryReads.connections(mine, [(ids ?? idsOf(mine)).connection])),
  "SummaryReads.transformations": (ids) =>
    told(SummaryReads.transformations(mine, [(ids ?? idsOf(mine)).transformation])),
  "BinReads.binRequests": (ids) =>
    BinReads.binRequests({ id: (ids ?? idsOf(mine)).source, team_id: mine, expires_at: new Date(old.now) }, sub),
  "CapturedReads.captured": (ids) => CapturedReads.captured(mine, [req(ids, 6)]),
  "CapturedReads.newestRequests": (ids) =>
    CapturedReads.newestRequests([{ source: (ids ?? idsOf(mine)).source, team: mine }], old.now - 86_400_000, 100),
  "AlertReads.listAlerts": () => AlertReads.listAlerts(mine, "all", sub),
  "AlertReads.alertOf": (ids) =>
    AlertReads.alertOf(mine, `cal_${itemSourceOf(ids?.destination === resourcesOf(other).destination ? other : mine)}`),
  "IssueReads.listIssues": (ids) =>
    IssueReads.listIssues(mine, { statuses: [], destinations: some(ids?.destination) }, sub),
  "IssueReads.issueOf": (ids) =>
    IssueReads.issueOf(mine, issueOf(ids?.destination === resourcesOf(other).destination ? other : mine)),
  "ChannelReads.listChannels": () => ChannelReads.listChannels(mine, []),
  "ChannelReads.channelHistory": (ids) => ChannelReads.channelHistory(mine, (ids ?? idsOf(mine)).items, 10),
  "ChannelReads.channelMetrics": () => ChannelReads.channelMetrics(mine, 2),
  "ChannelReads.sourceRuns": (ids) => ChannelReads.sourceRuns(mine, (ids ?? idsOf(mine)).items, "all", sub),
  "ProxyExchangeReads.ofRequest": (ids) => ProxyExchangeReads.ofRequest(mine, req(ids, 2)),
  "TraceReads.get": (ids) => TraceReads.get(mine, req(ids, 0)),
  "Store.list of sources": (ids) => Effect.flatMap(Sources, ({ list }) => list(mine, listing(some(ids?.source)))),
  "Store.list of destinations": (ids) =>
    Effect.flatMap(Destinations, ({ list }) => list(mine, listing(some(ids?.destination)))),
  "Store.list of connections": (ids) =>
    Effect.flatMap(Connections, ({ list }) =>
      list(mine, { ...listing(some(ids?.connection)), among: { source_id: some(ids?.source) } })
    ),
  "Store.list of transformations": (ids) =>
    Effect.flatMap(Transformations, ({ list }) => list(mine, listing(some(ids?.transformation)))),
  "Store.get of a source": (ids) => Effect.flatMap(Sources, ({ get }) => get(mine, (ids ?? idsOf(mine)).source)),
  "Store.get of a destination": (ids) =>
    Effect.flatMap(Destinations, ({ get }) => get(mine, (ids ?? idsOf(mine)).destination)),
  "Store.get of a connection": (ids) =>
    Effect.flatMap(Connections, ({ get }) => get(mine, (ids ?? idsOf(mine)).connection)),
  "Store.list of filters": (ids) => Effect.flatMap(Filters, ({ list }) => list(mine, listing(some(ids?.filter)))),
  "Store.get of a filter": (ids) => Effect.flatMap(Filters, ({ get }) => get(mine, (ids ?? idsOf(mine)).filter)),
  "Store.list of actions": (ids) => Effect.flatMap(Actions, ({ list }) => list(mine, listing(some(ids?.action)))),
  "Store.get of a action": (ids) => Effect.flatMap(Actions, ({ get }) => get(mine, (ids ?? idsOf(mine)).action)),
  "Store.list of workflows": (ids) => Effect.flatMap(Workflows, ({ list }) => list(mine, listing(some(ids?.workflow)))),
  "Store.get of a workflow": (ids) => Effect.flatMap(Workflows, ({ get }) => get(mine, (ids ?? idsOf(mine)).workflow)),
  "RunReads.workflowOf": (ids) => RunReads.workflowOf(mine, (ids ?? idsOf(mine)).workflow),
  "RunReads.list": (ids) => RunReads.list(mine, (ids ?? idsOf(mine)).workflow, [], page),
  "RunReads.one": (ids) => RunReads.one(mine, (ids ?? idsOf(mine)).workflow, req(ids, 6).replace(/^req_/, "wfr_")),
  "RunReads.byId": (ids) => RunReads.byId(mine, req(ids, 6).replace(/^req_/, "wfr_")),
  "RunReads.ofRequest": (ids) => RunReads.ofRequest(mine, req(ids, 6), 100),
  "RunReads.activity": (ids) =>
    RunReads.activity(mine, { search: undefined, sources: some(ids?.source), statuses: [] }, page),
  "RunReads.idsOf": (ids) =>
    RunReads.idsOf(mine, { search: undefined, sources: [], workflows: some(ids?.workflow), statuses: [] }, page),
  "VersionReads.list": (ids) => VersionReads.list(mine, (ids ?? idsOf(mine)).workflow, sub),
  "VersionReads.get": (ids) => VersionReads.get(mine, (ids ?? idsOf(mine)).workflow, 1),
  "VersionReads.definitionOf": (ids) => VersionReads.definitionOf(mine, (ids ?? idsOf(mine)).workflow, 1),
  "VersionReads.comparison": (ids) => VersionReads.comparison(mine, (ids ?? idsOf(mine)).workflow, 1, null),
  "SummaryReads.workflows": (ids) => told(SummaryReads.workflows(mine, [(ids ?? idsOf(mine)).workflow])),
  "NamedReads.named": () => NamedReads.named(mine, "sources", { query: "", behind: null, limit: 100 }),
  "Store.get of a transformation": (ids) =>
    Effect.flatMap(Transformations, ({ get }) => get(mine, (ids ?? idsOf(mine)).transformation))
}

/** What a read answers as text; an error that says that there is nothing is nothing. */
const shown = (read: Read) =>
  Effect.map(
    Effect.catchIf(
      read,
      (error) => error instanceof GatewayError && error.code === "NOT_FOUND",
      () => Effect.succeed(null)
    ),
    (answer) =>
      JSON.stringify(answer ?? null, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))
  )

layer(world, { excludeTestServices: true })("Reads of a team", (it) => {
  it.effect("This suite calls all read functions", () =>
    Effect.gen(function* () {
      const folder = join(import.meta.dirname, "../../src")
      const files = globSync("{reads,channels}/*Reads.ts", { cwd: folder })
      const functions: Array<string> = []
      for (const file of files) {
        const module = yield* Effect.promise(() => import(join(folder, file)) as Promise<Record<string, unknown>>)
        functions.push(...Object.keys(module).map((name) => `${basename(file, ".ts")}.${name}`))
      }
      functions.push("Store.get", "Store.list")
      expect([...new Set(Object.keys(cases).map((name) => name.split(" ")[0]!))].sort()).toEqual(functions.sort())
      for (const { name, plural } of resources) {
        expect(Object.keys(cases)).toEqual(
          expect.arrayContaining([`Store.list of ${plural}`, `Store.get of a ${name}`])
        )
      }
    })
  )

  it.effect("All tables of teams hold rows of both teams and none without a team", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const without: Array<string> = []
      for (const [name, { team }] of Object.entries<Table>(tables)) {
        if (team === null) continue
        const rows = yield* sql.unsafe<{ team: string | null }>(`select distinct ${team} as team from ${name}`)
        const found = new Set(rows.map((row) => row.team))
        if (!found.has(mine) || !found.has(other) || found.has(null)) without.push(name)
      }
      expect(without).toEqual([])
    })
  )

  for (const [name, read] of Object.entries(cases)) {
    it.effect(`A read shows nothing of another team: ${name}`, () =>
      Effect.gen(function* () {
        const others = [
          other,
          itemSourceOf(other),
          ...Object.values(resourcesOf(other)),
          idOf(old, other, 0, 0).slice(10, 16)
        ]
        // By its own ids it shows something, so that the rest means something.
        expect(["null", "[]", "0"]).not.toContain(
          yield* shown(read(name.endsWith("check") ? null : idsOf(mine))).pipe(
            Effect.map((text) => (name.endsWith("check") ? "checked" : text))
          )
        )
        for (const ids of [null, idsOf(mine), idsOf(other)]) {
          const text = yield* shown(read(ids))
          expect(others.filter((id) => text.includes(id))).toEqual([])
        }
        if (name.endsWith("count")) expect(JSON.parse(yield* shown(read(idsOf(other))))).toMatchObject({ total: 0 })
        if (name.startsWith("SummaryReads") || name.startsWith("MetricsReads")) {
          const text = (yield* shown(read(idsOf(other)))).replace(
            /"date_range":\{[^}]*\}|"timestamp":"[^"]*"|"\w+":/g,
            ""
          )
          expect(text.replace(/"1h"/g, "")).not.toMatch(/[1-9]/)
        }
        if (name.endsWith("check")) expect((yield* Effect.exit(read(idsOf(other))))._tag).toBe("Failure")
        if (name.startsWith("RequestReads.requestBody")) expect(yield* shown(read(idsOf(other)))).toBe("null")
      })
    )
  }
})
