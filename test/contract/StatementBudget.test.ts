import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"
import { request } from "../support/RawHttp.ts"
import { SqlStatements } from "../support/SqlStatements.ts"
import { eventually } from "../support/Waiting.ts"
import { begin, edge, ended } from "./workflowRuns.ts"

/**
 * How many statements an event and a run cost, as a count that no machine changes. One at a time, because then nothing is shared: what is sent for
 * each of twenty is sent twenty times. What many share depends on how they come together; of them the test says that it is less than one each.
 */

/** The statements by what they write or read. A statement without a name here is shown by its text. */
const names: ReadonlyArray<readonly [part: string, name: string]> = [
  ["insert into requests (", "accept"],
  ["insert into attempts (", "record"],
  ["delete from pending_routes", "settle"],
  ["dedupe_keys", "read dedupe windows"],
  ["update workflow_runs", "move run"],
  ["running as materialized", "read due runs"],
  ["convert_to(type", "read the step's destination"]
]

const nameOf = (statement: string): string =>
  names.find(([part]) => statement.includes(part))?.[1] ?? statement.slice(0, 200)

/** The poller's statement. */
const poll = "with recursive lanes"

/** Events, or runs, one after the other. A statement that is sent less often than that is not one of each. */
const inTurn = 20

const it = gatewayIt
  .extend("statements", { scope: "file" }, () => new SqlStatements())
  .extend("gateway", { scope: "file" }, async ({ statements }, { onCleanup }) => {
    const gateway = await Gateway.start({}, statements)
    onCleanup(() => gateway.close())
    return gateway
  })
  /** What the process asks by the clock, whatever happens. */
  .extend("clockwork", { scope: "file" }, async ({ gateway, statements }): Promise<ReadonlySet<string>> => {
    expect(gateway.runs).toBe(true)
    statements.restart()
    const polls = (): number =>
      [...statements.counts].reduce((sum, [text, count]) => sum + (text.startsWith(poll) ? count : 0), 0)
    await eventually("the poller has come round", polls, (count) => count >= 2)
    return new Set(statements.counts.keys())
  })
  /** Does something until it has come to its end, again and again; answers how many statements of each kind it takes each time. */
  .extend("eachTakes", ({ clockwork, statements }) => async (once: (nth: number) => Promise<unknown>) => {
    // The first ones read settings, and start actors.
    for (let i = 1; i <= 3; i++) await once(i)
    statements.restart()
    for (let i = 4; i <= 3 + inTurn; i++) await once(i)
    const sent = new Map<string, number>()
    for (const [text, count] of statements.counts) {
      const name = nameOf(text)
      if (!clockwork.has(text)) sent.set(name, (sent.get(name) ?? 0) + count)
    }
    const each = [...sent].map(([name, count]) => [name, Math.floor(count / inTurn)] as const)
    return Object.fromEntries(each.filter(([, count]) => count > 0))
  })
  .extend("post", ({ gateway }) => async (source: Source, body = "{}"): Promise<void> => {
    const answer = await request(gateway.port, { path: `/e/${source.id}`, body })
    expect(answer.status).toBe(200)
  })
  /** Completes when so many attempts of a connection are stored; asks the database past the gateway. */
  .extend("recorded", ({ gateway }) => async (connection: { readonly id: string }, attempts: number) => {
    const read = async (): Promise<number> => {
      const [row] = await gateway.sql("select count(*)::int as n from attempts where connection_id = $1", [
        connection.id
      ])
      return row.n
    }
    await eventually(`${attempts} attempts are recorded`, read, (count) => count === attempts)
  })

describe("Statements of an event", () => {
  it("A single event takes two statements: one stores it, and one records its delivery", async ({
    eachTakes,
    gateway,
    post,
    recorded,
    target
  }) => {
    const { connection, source } = await gateway.route(target)
    const each = await eachTakes(async (nth) => {
      await post(source)
      await recorded(connection, nth)
    })
    expect(each).toEqual({ accept: 1, record: 1 })
  })

  it("A single event takes two statements with a destination that answers itself", async ({
    eachTakes,
    gateway,
    post,
    recorded
  }) => {
    const source = await gateway.source()
    const connection = await gateway.connection(source, await gateway.destination({}, "MOCK_API"))
    const each = await eachTakes(async (nth) => {
      await post(source)
      await recorded(connection, nth)
    })
    expect(each).toEqual({ accept: 1, record: 1 })
  })

  it("A single event behind a deduplicate rule takes four statements", async ({
    eachTakes,
    gateway,
    post,
    recorded,
    target
  }) => {
    const { connection, source } = await gateway.route(target, { rules: [{ type: "deduplicate", window: 60_000 }] })
    const each = await eachTakes(async (nth) => {
      await post(source, `{"nth":${nth}}`)
      await recorded(connection, nth)
    })
    expect(each).toEqual({ accept: 1, "read dedupe windows": 1, settle: 1, record: 1 })
  })

  it("An event among many takes less than one statement", async ({
    clockwork,
    gateway,
    post,
    recorded,
    statements,
    target
  }) => {
    const { connection, source } = await gateway.route(target)
    await post(source)
    await recorded(connection, 1)
    statements.restart()
    const [senders, events] = [40, 10]
    const sending = async (): Promise<void> => {
      for (let i = 0; i < events; i++) await post(source)
    }
    await Promise.all(Array.from({ length: senders }, sending))
    await recorded(connection, 1 + senders * events)
    const sent = [...statements.counts].filter(([text]) => !clockwork.has(text))
    const count = sent.reduce((sum, [, one]) => sum + one, 0)
    expect(count, JSON.stringify(sent.map(([text, one]) => [nameOf(text), one]))).toBeLessThan(senders * events)
  })
})

describe("Statements of a workflow run", () => {
  it("A single run of one step takes five statements: accept, find, two moves and a destination read", async ({
    eachTakes,
    gateway
  }) => {
    const destination = await gateway.destination({}, "MOCK_API")
    const step = { id: "to_mock", kind: "destination", resource_id: destination.id }
    const { post } = await begin(gateway, [step], [edge(null, step.id)])
    const each = await eachTakes(async () => ended(gateway, await post()))
    expect(each).toEqual({ accept: 1, "read due runs": 1, "read the step's destination": 1, "move run": 2 })
  })
})
