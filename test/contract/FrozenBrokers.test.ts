import { Effect, Exit, Scope } from "effect"
import { describe, expect } from "vitest"
import { auth } from "../../packages/foreign-databases/test/Brokering.ts"
import type { OwnProgram } from "../../packages/foreign-databases/test/OwnBroker.ts"
import { ownNats, program as nats } from "../../packages/foreign-databases/test/OwnNats.ts"
import { ownRabbit, program as rabbit } from "../../packages/foreign-databases/test/OwnRabbit.ts"
import { ownRedis, program as redis } from "../../packages/foreign-databases/test/OwnRedis.ts"
import type { DestinationConfig } from "../support/Contract.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/**
 * Real brokers that stand still amid their messages, as in a network that has lost them: connections stay, and nobody answers. Events go
 * to a broker, and from there to a source of the same gateway. Brokers that are not installed are skipped.
 */

/** A broker with the way in and the way out of one queue. */
interface Party extends OwnProgram {
  readonly config: DestinationConfig
  readonly source: object
  /**
   * Messages that it has been given. Left out: it recognizes a repeated delivery. Redis does not: a command that it reads after its sender has
   * given up adds the event once more.
   */
  readonly given?: () => Promise<number>
}

const here = { host: "127.0.0.1", tls_mode: "disable" as const }
const byPassword = { auth_type: "DATABASE_PASSWORD" as const, auth }

const kinds: ReadonlyArray<{
  readonly type: "RABBITMQ" | "NATS_JETSTREAM" | "REDIS_STREAM"
  readonly program: string | undefined
  readonly start: Effect.Effect<Party, unknown, Scope.Scope>
}> = [
  {
    type: "RABBITMQ",
    program: rabbit,
    start: Effect.map(ownRabbit, (own) => {
      const place = { ...here, port: own.port, vhost: "shop" }
      return {
        ...own,
        config: { ...place, exchange: "orders", routing_key: "order.paid", ...byPassword },
        source: { subscription: { ...place, queue: "kept" }, auth }
      }
    })
  },
  {
    type: "NATS_JETSTREAM",
    program: nats,
    start: Effect.gen(function* () {
      const token = auth.password
      const own = yield* ownNats(`authorization { token: "${token}" }`, { token })
      yield* Effect.promise(async () => {
        await own.stream("ORDERS", { subjects: ["orders.>"], storage: "file" })
        await own.consumer("ORDERS", "tidegate", { ack_wait: 5_000_000_000 })
      })
      const signIn = { auth_type: "NATS_TOKEN" as const, auth: { token } }
      const place = { ...here, port: own.port, stream: "ORDERS" }
      return {
        ...own,
        config: { ...place, subject: "orders.paid", ...signIn },
        source: { subscription: { ...place, consumer: "tidegate" }, ...signIn }
      }
    })
  },
  {
    type: "REDIS_STREAM",
    program: redis,
    start: Effect.map(ownRedis, (own) => {
      const place = { ...here, port: own.port, stream: "orders:paid" }
      return {
        ...own,
        config: { ...place, ...byPassword },
        source: {
          subscription: { ...place, create_group: "oldest" },
          auth_type: "BASIC_AUTH",
          auth: { username: "default", password: "owner" }
        },
        given: async () => Number(await own.owner("XLEN", place.stream))
      }
    })
  }
]

const installed = kinds.filter(({ program }) => program !== undefined)

const before = 300
const during = 100

/** Sends so many events through a broker, which is frozen amid them until a delivery to it has failed. */
const throughFrozen = async (gateway: Gateway, type: string, party: Party) => {
  const source = { name: gateway.name("read"), type, config: party.source }
  const { body } = await gateway.call("POST", "/sources", source)
  const id = String(body.id)
  const from = await gateway.source()
  const to = await gateway.destination(party.config, type)
  await gateway.connection(from, to, [{ type: "retry", strategy: "linear", interval: 1_000, count: 30 }])
  const send = async (first: number, count: number): Promise<void> => {
    const numbers = Array.from({ length: count }, (_, n) => first + n)
    const statuses = await Promise.all(
      numbers.map(async (n) => (await fetch(from.url, { method: "POST", body: `{"n":${n}}` })).status)
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
  }
  const stored = async () =>
    Number((await gateway.sql("select count(*) as n from requests where source_id = $1", [id]))[0]!["n"])
  await send(0, 1)
  await gateway.eventually("the source reads", async () => ((await stored()) > 0 ? true : null))
  await Promise.all([send(1, before - 1), Effect.runPromise(party.freeze)])
  await send(before, during)
  await gateway.eventually("a delivery has failed", async () => {
    const [row] = await gateway.sql(
      "select count(*) as n from attempts a join events e on e.id = a.event_id where e.destination_id = $1 and a.error_code is not null",
      [to.id]
    )
    return Number(row!["n"]) > 0 ? true : null
  })
  await Effect.runPromise(party.thaw)
  return { id, given: party.given ?? (() => Promise.resolve(before + during)) }
}

const it = gatewayIt.extend("sources", { scope: "file" }, async ({ gateway }, { onCleanup }) => {
  const scope = Scope.makeUnsafe()
  onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  // All of them at once: most of the time nothing happens.
  return new Map(
    await Promise.all(
      installed.map(async ({ start, type }) => {
        const party = await Effect.runPromise(start.pipe(Scope.provide(scope)))
        return [type, await throughFrozen(gateway, type, party)] as const
      })
    )
  )
})

describe.skipIf(installed.length === 0)("Broker that stands still (skipped if none is installed)", () => {
  for (const { type } of installed) {
    it(`Each event goes through a frozen ${type} to its source, and no message becomes two requests`, async ({
      gateway,
      sources
    }) => {
      const { given, id } = sources.get(type)!
      const counted = async () => {
        const [row] = await gateway.sql(
          "select count(*) as n, count(distinct convert_from(body, 'utf8')) as kinds from requests where source_id = $1",
          [id]
        )
        return { requests: Number(row!["n"]), events: Number(row!["kinds"]) }
      }
      await gateway.eventually("all have come", counted, ({ events }) => events === before + during)
      await gateway.eventually("each message is a request", async () =>
        (await counted()).requests >= (await given()) ? true : null
      )
      await gateway.api("DELETE", `/sources/${id}`)
      expect(await counted()).toEqual({ requests: await given(), events: before + during })
    })
  }
})
