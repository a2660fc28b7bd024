import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"
import { expect } from "vitest"
import type { Body, Gateway } from "../support/Gateway.ts"
import { heldMs, timesSlower, watchedLoop } from "../support/LoopHeld.ts"
import { it as gatewayIt } from "../support/it.ts"

/**
 * What one team reads, however much it is, keeps no other team waiting: answers are bounded in bytes, written in turns of the event loop, and read on few of
 * the connections that all have.
 */

const it = gatewayIt.extend("settings", { scope: "file" }, watchedLoop)

const large = { a: "x".repeat(63_000) }
const requests = 90
/** 4 MiB of records, and what stands around them. */
const maxBytes = 4.5 * 1024 * 1024
/** Half of what the loop may be held for. Such pages took 16 to 42 ms when each was encoded in one go; they take 4 to 12 now. */
const maxHeldMs = 25

const post = async (gateway: Gateway, source: string): Promise<string> => {
  const answer = await fetch(`${gateway.origin}/e/${source}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(large)
  })
  return ((await answer.json()) as Body).request_id
}

/** A source with so many connections to a mock that answers what it is sent. */
const fanned = async (gateway: Gateway, connections: number): Promise<string> => {
  const source = await gateway.source()
  const mock = await gateway.api("POST", "/destinations", {
    name: gateway.name("mock"),
    type: "MOCK_API",
    config: { path: "/hooks" }
  })
  for (let i = 0; i < connections; i++) {
    await gateway.api("POST", "/connections", {
      name: gateway.name("link"),
      source_id: source.id,
      destination_id: mock.id
    })
  }
  return source.id
}

const textOf = async (gateway: Gateway, path: string): Promise<string> => {
  const answer = await fetch(`${gateway.origin}/v1${path}`, { headers: { authorization: `Bearer ${gateway.key}` } })
  const text = await answer.text()
  expect(answer.status, text.slice(0, 1_000)).toBe(200)
  return text
}

/** Reads it a few times, because one may be held up by what else the process does. */
const minHeld = async (gateway: Gateway, path: string): Promise<number> => {
  const held: Array<number> = []
  while (held.length < 5) {
    await heldMs()
    await textOf(gateway, path)
    held.push((await heldMs()).processorMs)
  }
  return Math.min(...held)
}

const withCursor = (path: string, cursor: string): string => `${path}&cursor=${encodeURIComponent(cursor)}`
const withAfter = (path: string, cursor: string): string => path.replace("after=now", `after=${cursor}`)

it("Pages of large records end by size, continue by cursor, and do not block the event loop", async ({ gateway }) => {
  const source = await fanned(gateway, 1)
  const start = JSON.parse(await textOf(gateway, `/events?after=now&source_id=${source}&include=data`)).next_cursor
  for (let i = 0; i < requests; i++) await post(gateway, source)
  await gateway.settled()
  const lists = [
    [`/requests?source_id=${source}&include=data&limit=100`, withCursor],
    [`/events?source_id=${source}&include=data&limit=100`, withCursor],
    [withAfter(`/events?after=now&source_id=${source}&include=data&limit=100`, start), null],
    ["/attempts?limit=255", withCursor]
  ] as const
  for (const [path, next] of lists) {
    const ids: Array<string> = []
    let pages = 0
    for (let at = path; ; pages++) {
      const text = await textOf(gateway, at)
      expect(text.length, path).toBeLessThan(maxBytes)
      const page = JSON.parse(text)
      ids.push(...page.models.map(({ id }: Body) => id))
      const cursor = page.next_cursor ?? page.pagination.next ?? null
      if (cursor === null || (next === null && !page.has_more)) break
      at = next === null ? path.replace(/after=[^&]*/, `after=${cursor}`) : next(path, cursor)
    }
    expect(pages, path).toBeGreaterThan(0)
    expect([path, ids.length, new Set(ids).size]).toEqual([path, requests, requests])
    expect(await minHeld(gateway, path), path).toBeLessThan(maxHeldMs * timesSlower())
  }
})

it("A trace of large answers shows as many as fit and states that there are more", async ({ gateway }) => {
  const id = await post(gateway, await fanned(gateway, 70))
  await gateway.settled()
  const text = await textOf(gateway, `/requests/${id}/trace`)
  // Attempts stand in it twice: by themselves, and by their events.
  expect(text.length).toBeLessThan(2 * maxBytes)
  const { attempts, counts, events, truncated } = JSON.parse(text)
  expect([events.length, truncated, counts.attempts]).toEqual([70, true, attempts.length])
  expect(attempts.length).toBeGreaterThan(50)
  expect(await minHeld(gateway, `/requests/${id}/trace`)).toBeLessThan(maxHeldMs * timesSlower())
})

it("Twenty lists of one team that wait for the database leave connections to another team", async ({ gateway }) => {
  await gateway.sql("insert into teams (id, name) values ('tm_other', 'Other') on conflict do nothing")
  const other = await gateway.session("owner", "tm_other")
  const scope = Scope.makeUnsafe()
  const session = await Effect.runPromise(
    PgConnection.make({ url: Redacted.make(gateway.databaseUrl), applicationName: "test" }).pipe(Scope.provide(scope))
  )
  try {
    for (const statement of ["begin", "lock table sources in access exclusive mode"]) {
      await Effect.runPromise(session.query(statement, [], false))
    }
    let answered = 0
    const lists = Array.from({ length: 20 }, () =>
      gateway.call("GET", "/sources").then(({ status }) => {
        answered++
        return status
      })
    )
    const beside = async (): Promise<void> => {
      await gateway.eventually("lists wait for the table", async () => {
        const [{ count }] = await gateway.sql(
          "select count(*)::int4 as count from pg_locks where not granted and relation = 'sources'::regclass"
        )
        return count >= 4 ? true : null
      })
      expect((await gateway.call("GET", "/destinations", undefined, other)).status).toBe(200)
      expect(answered).toBe(0)
      await Effect.runPromise(session.query("commit", [], false))
    }
    const [statuses] = await Promise.all([Promise.all(lists), beside()])
    expect(new Set(statuses)).toEqual(new Set([200]))
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
})
