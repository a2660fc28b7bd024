import { describe, expect } from "vitest"
import type { Config } from "@tidegate/connectors/Settings"
import { startStore, storeKey } from "../../packages/connectors/test/StoreServer.ts"
import type { Sent } from "../support/Contract.ts"
import { it as base } from "../support/it.ts"
import { configOf } from "../support/Mocks.ts"
import { patience } from "../support/Waiting.ts"

/** Several events in one object, by a gateway and a store that checks every signature. */

interface Stored {
  readonly event_id: string
  readonly payload: { readonly n: number; readonly customer?: string }
}

const it = base
  .extend("store", async ({}, { onCleanup }) => {
    const store = await startStore(["archive"])
    onCleanup(() => store.close())
    return {
      ...store,
      /** What each object has, in the order in which the objects came, by key. */
      lines: (): ReadonlyArray<readonly [string, ReadonlyArray<Stored>]> =>
        [...store.objects].map(([key, { body }]) => [
          key,
          body
            .toString()
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line) as Stored)
        ])
    }
  })
  /** A source whose events go to the store in batches. */
  .extend(
    "batching",
    ({ gateway, store }) =>
      async (batch: Config, connection: Partial<Sent<"POST", "/connections">> = {}) => {
        const where = { region: store.region, endpoint: store.origin, force_path_style: true, bucket: "archive", batch }
        const written = configOf("OBJECT_STORE_S", {
          config: where,
          auth_type: "OBJECT_STORE_S_ACCESS_KEY",
          auth: { access_key_id: storeKey.accessKeyId, secret_access_key: storeKey.secretAccessKey }
        })
        const destination = await gateway.destination(written, "OBJECT_STORE_S")
        const source = await gateway.source()
        await gateway.connection(source, destination, [], connection)
        return async (payload: object): Promise<string> => {
          const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(payload)
          })
          return ((await answer.json()) as { readonly request_id: string }).request_id
        }
      }
  )
  /** The event and the attempts of a request, once the event has ended. */
  .extend(
    "ended",
    ({ gateway }) =>
      (requestId: string) =>
        gateway.eventually("the event ends", async () => {
          const { attempts, events } = await gateway.traced(requestId)
          const [event] = events
          return event?.status === "SUCCESSFUL" || event?.status === "FAILED" ? { attempts, event } : null
        })
  )

const numbers = Array.from({ length: 6 }, (_, n) => n)

describe("Batches of an object store", () => {
  it("Each event has one attempt with the URL of the object that has it", async ({ batching, ended, store }) => {
    const send = await batching({ max_count: 3, max_wait_ms: 5_000 })
    const ends = await Promise.all((await Promise.all(numbers.map((n) => send({ n })))).map(ended))
    const objects = store.lines()
    // A slow machine may send a batch before it is full.
    expect(objects.length).toBeLessThan(numbers.length)
    expect(Math.max(...objects.map(([, lines]) => lines.length))).toBeLessThanOrEqual(3)
    expect(objects.flatMap(([, lines]) => lines).length).toBe(numbers.length)
    for (const { attempts, event } of ends) {
      const [key] = objects.find(([, lines]) => lines.some(({ event_id }) => event_id === event.id))!
      expect(attempts.map(({ requested_url, response_status }) => [requested_url, response_status])).toEqual([
        [`${store.origin}/${key}`, 200]
      ])
      expect(event.status).toBe("SUCCESSFUL")
    }
  })

  it("Object that is too large is stored in parts, and only the event that is too large itself fails", async ({
    batching,
    ended,
    store
  }) => {
    store.hooks.refusal = (body) => {
      const lines = body.toString().trimEnd().split("\n")
      return lines.length > 1 || lines[0]!.includes('"n":2') ? "EntityTooLarge" : null
    }
    const send = await batching({ max_count: 6, max_wait_ms: 5_000 })
    const ends = await Promise.all((await Promise.all(numbers.map((n) => send({ n })))).map(ended))
    expect(ends.map(({ attempts, event }) => [attempts.length, event.status])).toEqual(
      numbers.map((n) => [1, n === 2 ? "FAILED" : "SUCCESSFUL"])
    )
    const stored = store.lines().flatMap(([, lines]) => lines.map(({ payload }) => payload.n))
    expect(stored.toSorted((a, b) => a - b)).toEqual(numbers.filter((n) => n !== 2))
  })

  it("Events of an ordering key are stored one after the other, and never in one object", async ({
    batching,
    ended,
    store
  }) => {
    const send = await batching(
      { max_count: 4, max_wait_ms: 20 },
      { ordering: { key: "body.customer", on_failure: "block" } }
    )
    const customers = ["a", "b", "c"]
    const requests: Array<string> = []
    for (const n of numbers) for (const customer of customers) requests.push(await send({ customer, n }))
    await Promise.all(requests.map(ended))
    const objects = store.lines().map(([, lines]) => lines.map(({ payload }) => payload))
    for (const lines of objects) expect(new Set(lines.map(({ customer }) => customer)).size).toBe(lines.length)
    for (const customer of customers) {
      const own = objects.flat().filter((payload) => payload.customer === customer)
      expect(own.map(({ n }) => n)).toEqual(numbers)
    }
  })

  it(
    "Gateway that is killed while a store answers loses no event",
    { timeout: 4 * patience },
    async ({ batching, ended, gateway, store }) => {
      const held = Promise.withResolvers<void>()
      const reached = Promise.withResolvers<void>()
      store.hooks.stored = () => {
        reached.resolve()
        return held.promise
      }
      const send = await batching({ max_count: 3, max_wait_ms: 100, compression: "none" })
      const requests = await Promise.all(numbers.map((n) => send({ n })))
      await reached.promise
      await gateway.restart("SIGKILL")
      store.hooks.stored = () => Promise.resolve()
      held.resolve()
      const ends = await Promise.all(requests.map(ended))
      expect(ends.map(({ event }) => event.status)).toEqual(numbers.map(() => "SUCCESSFUL"))
      const stored = new Set(store.lines().flatMap(([, lines]) => lines.map(({ payload }) => payload.n)))
      expect([...stored].toSorted((a, b) => a - b)).toEqual(numbers)
    }
  )
})
