import { Effect, Exit, Scope } from "effect"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { Fault } from "../faults/Fault.ts"
import { everyKeyArrives, hold } from "../faults/Round.ts"
import { createRoute } from "../faults/Routes.ts"
import { openWorld } from "../faults/Series.ts"
import { programIn } from "../support/GatewayProcess.ts"
import { portsOf } from "../support/Peers.ts"
import { bodyOf, comeTo, countOf, create, echoing, tokenOf, usual } from "../support/SevenSteps.ts"
import { readRuns } from "../support/StoredRuns.ts"
import { eventually, now, patience, waitUntil } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { checkOutPrevious, whyWithoutPrevious } from "./Previous.ts"

/** Runners before edges, as the changelog says. */
const order = ["runner-1", "runner-2", "edge"] as const

/** This checkout. */
const present = join(import.meta.dirname, "../..")

/** The number of the last migration in a checkout. */
const lastMigration = async (checkout: string): Promise<number> => {
  const files = await readdir(join(checkout, "packages/storage/src/migrations"))
  return Math.max(...files.map((file) => Number.parseInt(file, 10)))
}

describe("Update from the previous version", () => {
  it("A rolling update loses nothing, repeats nothing and refuses no sender", async ({ onTestFinished, skip }) => {
    const why = await whyWithoutPrevious()
    skip(why !== null, why ?? "")
    const scope = Scope.makeUnsafe()
    onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const previous = await checkOutPrevious(await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope))))
    const { close, world } = await openWorld("cluster", {
      perSecond: 30,
      operations: true,
      program: programIn(previous)
    })
    // All end by SIGTERM.
    onTestFinished(async () => expect(await close()).toEqual([]))
    const { cluster, load, target } = world
    // Those that each stage makes are judged with the others.
    const routes = [...world.routes]
    const keys = routes.flatMap(({ connections }) => connections.map(({ key }) => key))

    const post = async (source: string, body: object): Promise<string> => {
      const headers = { "content-type": "application/json" }
      const answer = await fetch(`${cluster.origin}/e/${source}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body)
      })
      expect(answer.status).toBe(200)
      return ((await answer.json()) as { request_id: string }).request_id
    }

    /** A new connection, a change that the actor of its destination makes, and a request that is delivered and can be read. */
    const operate = async (stage: string): Promise<void> => {
      const route = await createRoute(cluster, target.origin, stage, [{ key: stage }])
      routes.push(route)
      const { destinationId, id } = route.connections[0]!
      await cluster.api("PATCH", `/destinations/${destinationId}`, { description: stage })
      expect(await cluster.api("GET", `/destinations/${destinationId}`)).toMatchObject({ description: stage })
      const request = await post(route.sourceId, { n: -routes.length, kind: "order", group: stage, line: 0 })
      const trace = await eventually(
        `the request of the stage ${stage} is delivered`,
        () => cluster.api("GET", `/requests/${request}/trace`),
        ({ events }) => events[0]?.status === "SUCCESSFUL"
      )
      expect(trace.events.map(({ connection_id }) => connection_id)).toEqual([id])
    }

    const schema = async (): Promise<unknown> =>
      (await cluster.postgres.query("select max(migration_id)::int as last from migrations"))[0]!["last"]

    const steps = await echoing()
    onTestFinished(() => steps.close())
    const { source, workflow } = await create(
      (list, body) => cluster.api("POST", list, body) as Promise<{ id: string }>,
      "orders",
      steps.origin
    )
    const tokens: Array<string> = []
    const startRun = async (): Promise<string> => {
      const token = `run-${tokens.length}`
      tokens.push(token)
      await post(source, JSON.parse(bodyOf(token)) as object)
      return token
    }
    const runs = () => readRuns((statement, values) => cluster.postgres.query(statement, values), workflow)
    const runsEnd = () =>
      eventually(
        "all runs have ended",
        async () => ((await runs()).length === tokens.length ? await runs() : null),
        (all) => all.every(({ outcome }) => outcome !== null)
      )

    /** When senders found no edge. */
    const away = { from: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY }
    const update: Fault = {
      name: "an update, one process after the other",
      topology: "cluster",
      ingressStaysUp: false,
      inflict: async () => {
        const recoverableAt = now()
        expect(await schema()).toBe(await lastMigration(previous))
        await operate("before")
        await startRun()
        await runsEnd()
        const begun = await startRun()
        await waitUntil("the second run has called", () => steps.received.some((call) => tokenOf(call) === begun))
        // Older processes cannot read runs that new ones have stored. This run, and those of later requests, wait.
        await cluster.api("PATCH", `/workflows/${workflow}`, { status: "paused" })

        for (const name of order) {
          await startRun()
          if (name === "edge") away.from = now()
          await cluster.update(name)
          const updatedAt = now()
          if (name === "edge") away.until = updatedAt
          expect(await schema()).toBe(await lastMigration(present))
          await everyKeyArrives(target, keys, updatedAt, patience)
          if (name === "runner-1") {
            await waitUntil("the runner of the previous version delivers", () => {
              const ports = portsOf(cluster.pid("runner-2"), target.port)
              return ports === null || target.arrivals.some(({ at, port }) => at > updatedAt && ports.has(port))
            })
          }
          await operate(`after-${name}`)
        }
        await startRun()
        await cluster.api("PATCH", `/workflows/${workflow}`, { status: "active" })
        await runsEnd()
        // How long anything takes is no part of this.
        return { recoverableAt, limitMs: Number.POSITIVE_INFINITY, crashes: [], disturbed: [] }
      }
    }

    const { figures, findings } = await hold({ ...world, routes }, update)
    expect(findings.lines).toEqual([])
    expect(figures).toMatchObject({ lost: 0, repeated: 0, unexplained: 0 })
    expect(figures!.bulk).toBeGreaterThan(0)

    // A request that has no 200 has no answer, and came while there was no edge.
    const unanswered = load.sent.filter(({ status }) => status !== 200)
    expect(
      unanswered.filter(({ sentAt, status }) => status !== null || sentAt < away.from || sentAt > away.until)
    ).toEqual([])

    const listed = new Set<string>()
    for (let cursor: string | null = ""; cursor !== null;) {
      const page: { readonly models: ReadonlyArray<{ readonly id: string }>; readonly next_cursor: string | null } =
        await cluster.api("GET", `/requests?limit=250${cursor === "" ? "" : `&cursor=${cursor}`}`)
      for (const { id } of page.models) listed.add(id)
      cursor = page.next_cursor
    }
    const acknowledged = load.sent.flatMap(({ requestId }) => (requestId === null ? [] : [requestId]))
    expect(acknowledged.filter((id) => !listed.has(id))).toEqual([])

    const ended = await runs()
    const expected = comeTo(ended[0]!, tokens[0]!)
    for (const [index, run] of ended.entries()) {
      const token = tokens[index]!
      expect(run.faults, token).toEqual([])
      expect(comeTo(run, token), token).toEqual(expected)
      expect(countOf(steps.received.filter((call) => tokenOf(call) === token)), token).toEqual(usual)
      const read = await cluster.api("GET", `/workflows/${workflow}/runs/${run.id}`)
      expect(read).toMatchObject({ id: run.id, outcome: run.outcome })
    }
  })
})
