import { describe, expect } from "vitest"
import { it } from "../support/it.ts"
import { waitUntil } from "../support/Waiting.ts"

/** Whoever follows events sees each once: of two processes that store them at once, of slow transformations, of retries and of bulk operations. */

const requests = 120

const code = `addHandler("transform", (request) => {
  const until = Date.now() + (request.body.n % 4) * 15
  while (Date.now() < until) continue
  return { ...request, body: { ...request.body, transformed: true } }
})`

describe("Event feed", () => {
  it("Each reader of the event feed gets every event exactly once and in the same order", async ({
    running,
    target
  }) => {
    const gateways = await running({ a: "all", b: "all" })
    await waitUntil("both hold shards", async () => (await gateways.readiness("b")).shards > 0)
    const source = await gateways.api("a", "POST", "/sources", { name: "followed" })
    const destination = await gateways.api("a", "POST", "/destinations", {
      name: "any",
      config: { url: target.origin }
    })
    const slow = await gateways.api("a", "POST", "/transformations", { name: "slow", code })
    const ends = { source_id: source.id, destination_id: destination.id }
    await gateways.api("a", "POST", "/connections", { name: "plain", ...ends })
    await gateways.api("a", "POST", "/connections", {
      name: "slow",
      ...ends,
      rules: [{ type: "transform", transformation_id: slow.id }]
    })

    let over = false
    const follow = async (by: "a" | "b", limit: number) => {
      const ids: Array<string> = []
      let after = "now"
      let pages = 0
      for (let last = false; ;) {
        const page = await gateways.api(by, "GET", `/events?after=${after}&limit=${limit}`)
        ids.push(...page.models.map(({ id }) => id))
        after = String(page.next_cursor)
        pages++
        if (pages === 1) began++
        if (!page.has_more) {
          if (last) return ids
          last = over
        }
      }
    }
    let began = 0

    const send = async (by: "a" | "b", n: number) => {
      const { status } = await gateways.call(by, "POST", `/e/${source.id}`, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ n })
      })
      expect(status).toBe(200)
    }
    const stored = async () => (await gateways.query("select id from events")).map(({ id }) => String(id))
    const events = async (): Promise<void> => {
      await waitUntil("all have begun", () => began === 3)
      for (let n = 0; n < requests; n += 8) {
        await Promise.all(Array.from({ length: 8 }, (_, by) => send(by % 2 === 0 ? "a" : "b", n + by)))
      }
      await waitUntil("all are transformed", async () => (await stored()).length === 2 * requests)
      await waitUntil("all are delivered", async () => {
        const [row] = await gateways.query("select count(*)::int4 as n from deliveries")
        return row!["n"] === 0
      })
      const { body } = await gateways.call("b", "POST", "/v1/events/bulk_operations", {
        headers: { authorization: "Bearer gwk_cluster_test_key", "content-type": "application/json" },
        body: JSON.stringify({ source_id: source.id, status: "SUCCESSFUL" })
      })
      expect(JSON.parse(body).code).toBeUndefined()
      await waitUntil("all are retried", async () => (await stored()).length === 4 * requests)
      // What is stored is shown when no older transaction is under way: those of other databases of the server count.
      await waitUntil("all can be shown", async () => {
        const [row] = await gateways.query(
          "select max(txid) < pg_snapshot_xmin(pg_current_snapshot()) as shown from event_feed"
        )
        return row!["shown"] === true
      })
    }
    const [, ...followed] = await Promise.all([
      events().finally(() => (over = true)),
      follow("a", 100),
      follow("b", 7),
      follow("a", 1)
    ])

    const all = (await stored()).toSorted()
    for (const ids of followed) {
      expect(ids.toSorted()).toEqual(all)
      expect(ids).toEqual(followed[0])
    }
    // By their times they stand in another order: whoever had polled by these would have lost some.
    expect(followed[0]).not.toEqual(all)
  })
})
