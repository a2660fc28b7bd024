import { describe, expect } from "vitest"
import type { Gateways } from "../support/Gateways.ts"
import { parseExposition, sampleValue } from "../support/Exposition.ts"
import { it as gatewayIt } from "../support/it.ts"
import type { Target } from "../support/Target.ts"
import { waitUntil } from "../support/Waiting.ts"

type Name = "a" | "b"

const settings = { TIDEGATE_STANDBY: "on" }

/** Two processes of one host. One of them holds all shards; the names are unknown before they have started. */
const it = gatewayIt.extend("host", async ({ running }) => {
  const gateways: Gateways<Name> = await running({ a: "all", b: "all" }, settings)
  const shardsOf = async (name: Name): Promise<number> => (await gateways.readiness(name)).shards
  let active: Name = "a"
  await waitUntil("one process holds all shards", async () => {
    const [a, b] = [await shardsOf("a"), await shardsOf("b")]
    active = a > b ? "a" : "b"
    return a + b === 64 && a * b === 0
  })
  const standby: Name = active === "a" ? "b" : "a"
  return { gateways, active, standby, shardsOf }
})

/** A source with a destination, and how to send to it. Each request has a number of its own. */
const route = async (gateways: Gateways<Name>, by: Name, { origin }: Target) => {
  const source_id = (await gateways.api(by, "POST", "/sources", { name: "orders" })).id
  const config = { url: origin }
  const destination_id = (await gateways.api(by, "POST", "/destinations", { name: "orders", config })).id
  await gateways.api(by, "POST", "/connections", { name: "orders", source_id, destination_id })
  let last = 0
  const send = async (to: Name): Promise<number> => {
    const n = ++last
    const { body, status } = await gateways.call(to, "POST", `/e/${source_id}`, { body: JSON.stringify({ n }) })
    expect(status, body).toBe(200)
    return n
  }
  return { source_id, send }
}

const numbersAt = (target: Target): ReadonlyArray<number> =>
  target.received.map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n)

const upTo = (n: number): ReadonlyArray<number> => Array.from({ length: n }, (_, index) => index + 1)

const sorted = (numbers: Iterable<number>): ReadonlyArray<number> => [...numbers].toSorted((a, b) => a - b)

describe("Several processes of one host", () => {
  it("The active process commits and delivers what the standby receives", async ({ host, target }) => {
    const { active, gateways, standby } = host
    const { send } = await route(gateways, standby, target)
    await Promise.all(upTo(40).map(() => send(standby)))
    await waitUntil("all has come", () => target.received.length >= 40)
    expect(sorted(numbersAt(target))).toEqual(upTo(40))
    expect(target.from(gateways.process(active).pid!)).toHaveLength(40)

    const { body, status } = await gateways.call(standby, "GET", "/metrics", {
      headers: { authorization: "Bearer gwk_cluster_test_key" }
    })
    expect(status).toBe(200)
    const metrics = parseExposition(body)
    expect(sampleValue(metrics, "tidegate_forwarded_requests_total", { committer: "active" })).toBe(40)
    expect(sampleValue(metrics, "tidegate_journal_commits_total", { kind: "accept" }) ?? 0).toBe(0)
    expect(await gateways.readiness(standby)).toMatchObject({ ok: true, shards: 0, standby: true })
    expect(await gateways.readiness(active)).toMatchObject({ ok: true, shards: 64, standby: false })
  })

  it("A change at one process holds for the next request at the other", async ({ host, target }) => {
    const { active, gateways, standby } = host
    const { send, source_id } = await route(gateways, active, target)
    await send(standby)
    await gateways.api(active, "PUT", `/sources/${source_id}/disable`)
    const { status } = await gateways.call(standby, "POST", `/e/${source_id}`, { body: "{}" })
    expect(status).toBe(403)
  })

  it("When the active process is killed, the standby accepts each request and takes over all work", async ({
    host,
    target
  }) => {
    const { active, gateways, shardsOf, standby } = host
    const { send } = await route(gateways, standby, target)
    await Promise.all(upTo(10).map(() => send(standby)))
    const [all] = await Promise.all([
      Promise.all(upTo(60).map(() => send(standby))),
      gateways.process(active).end("SIGKILL")
    ])
    await waitUntil("it has taken over", async () => (await shardsOf(standby)) === 64)
    expect(all).toHaveLength(60)
    await send(standby)
    await waitUntil("all has come", () => new Set(numbersAt(target)).size === 71)
    // The other one comes back, and there is work for one only.
    await gateways.process(active).start()
    expect(await gateways.readiness(active)).toMatchObject({ ok: true, shards: 0, standby: true })
    expect(await shardsOf(standby)).toBe(64)
  })

  it("When the active process is frozen, requests are accepted and delivered once", async ({ host, target }) => {
    const { active, gateways, shardsOf, standby } = host
    const { send } = await route(gateways, standby, target)
    await Promise.all(upTo(10).map(() => send(standby)))
    // A delivery that is not recorded yet would be repeated.
    await waitUntil("all is recorded", async () => {
      const [row] = await gateways.query("select count(*)::int4 as n from events where state = 'SUCCESSFUL'")
      return row?.["n"] === 10
    })
    gateways.process(active).signal("SIGSTOP")
    await Promise.all(upTo(20).map(() => send(standby)))
    await waitUntil("it has taken over", async () => (await shardsOf(standby)) === 64)
    await waitUntil("all has come", () => new Set(numbersAt(target)).size === 30)
    gateways.process(active).signal("SIGCONT")
    await waitUntil("the other one is on standby", async () => (await gateways.readiness(active)).shards === 0)
    await send(active)
    await waitUntil("the last one has come", () => numbersAt(target).includes(31))
    expect(sorted(numbersAt(target))).toEqual(upTo(31))
  })

  it("When the active process ends, no request is refused, and each is delivered once", async ({ host, target }) => {
    const { active, gateways, shardsOf, standby } = host
    const { send } = await route(gateways, standby, target)
    const ended = new AbortController()
    const sendUntilEnded = async (): Promise<number> => {
      for (let count = 0; ; count += 5) {
        if (ended.signal.aborted && count >= 50) return count
        await Promise.all(upTo(5).map(() => send(standby)))
      }
    }
    const end = async (): Promise<void> => {
      await gateways.process(active).end("SIGTERM")
      ended.abort()
    }
    const [sent] = await Promise.all([sendUntilEnded(), end()])
    await waitUntil("it has taken over", async () => (await shardsOf(standby)) === 64)
    await waitUntil("all has come", () => target.received.length >= sent)
    expect(sorted(numbersAt(target))).toEqual(upTo(sent))
  })
})
