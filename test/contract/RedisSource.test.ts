import { Effect, Exit, Scope } from "effect"
import { Redis } from "ioredis"
import { describe, expect } from "vitest"
import { auth } from "../../packages/foreign-databases/test/Brokering.ts"
import { ownRedis, program } from "../../packages/foreign-databases/test/OwnRedis.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Sources of type REDIS_STREAM against a real Redis, where one is installed (`apt-get install redis-server`). */

/** The reader may do what docs/broker-sources.md says that it needs, and no more. */
const readers = [
  ["reader", "~read:*", "+xreadgroup", "+xack", "+xautoclaim", "+xgroup|create", "+select"],
  ["barred", "~read:*", "+xadd"]
]

const it = gatewayIt.extend("redis", { scope: "file" }, async ({}, { onCleanup }) => {
  const scope = Scope.makeUnsafe()
  let owner: Redis | undefined
  onCleanup(() => {
    owner?.disconnect()
    return Effect.runPromise(Scope.close(scope, Exit.void))
  })
  const server = await Effect.runPromise(ownRedis.pipe(Scope.provide(scope)))
  const prepare = async (): Promise<void> => {
    for (const [name, ...rights] of readers) {
      await server.owner("ACL", "SETUSER", name!, "on", `>${auth.password}`, "-@all", ...rights)
    }
  }
  await prepare()
  const redis = (owner = new Redis({
    port: server.port,
    host: "127.0.0.1",
    password: "owner",
    maxRetriesPerRequest: null
  }))
  /** Adds entries with one field each, in their order. */
  const add = (stream: string, field: string, values: ReadonlyArray<string>) =>
    values.reduce((pipeline, value) => pipeline.xadd(stream, "*", field, value), redis.pipeline()).exec()
  /** Entries that the group's consumers have and have not acknowledged. */
  const pending = async (stream: string): Promise<number> =>
    Number(((await redis.call("XPENDING", stream, "tidegate")) as ReadonlyArray<number>)[0])
  return { ...server, prepare, add, pending, call: redis.call.bind(redis) }
})

const signedIn = { auth_type: "BASIC_AUTH" as const, auth: { username: "reader", password: auth.password } }

const subscribe = (gateway: Gateway, port: number, stream: string, change: object = {}) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "REDIS_STREAM",
    config: {
      subscription: { host: "127.0.0.1", port, stream, create_group: "oldest", tls_mode: "disable", ...change },
      ...signedIn
    }
  } as never)

const state = (gateway: Gateway, id: string, good: (state: object & { readonly [name: string]: unknown }) => boolean) =>
  gateway.eventually("the subscription is so", async () => {
    const { subscription_state } = await gateway.api("GET", `/sources/${id}`)
    return good({ ...subscription_state! }) ? subscription_state! : null
  })

const bodies = (from: number, count: number) => Array.from({ length: count }, (_, n) => `{"n":${from + n}}`)

describe.skipIf(program === undefined)("Source in a stream of Redis (skipped if it is not installed)", () => {
  it("Each entry of the stream is one request, after kill -9 of the gateway and of the server", async ({
    gateway,
    redis
  }) => {
    const source = await subscribe(gateway, redis.port, "read:orders")
    const stored = async () =>
      Number((await gateway.sql("select count(*) as n from requests where source_id = $1", [source.id]))[0]!["n"])
    const more = (than: number) =>
      gateway.eventually(`more than ${than} are stored`, async () => ((await stored()) > than ? true : null))
    await redis.add("read:orders", "body", bodies(0, 400))
    await more(50)
    await gateway.restart("SIGKILL")
    await more(300)
    await redis.add("read:orders", "body", bodies(400, 400))
    await Effect.runPromise(Effect.andThen(redis.kill, redis.start))
    await redis.prepare()
    await redis.add("read:orders", "body", bodies(800, 200))
    await more(999)
    await gateway.eventually("all is acknowledged", async () =>
      (await redis.pending("read:orders")) === 0 ? true : null
    )
    const numbers = await gateway.sql(
      "select count(*) as n, count(distinct convert_from(body, 'utf8')) as kinds from requests where source_id = $1",
      [source.id]
    )
    expect(numbers.map(({ kinds, n }) => [Number(n), Number(kinds)])).toEqual([[1_000, 1_000]])
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("What a dead consumer of the group was given is taken over, and what was deleted meanwhile is forgotten", async ({
    gateway,
    redis
  }) => {
    await redis.call("XGROUP", "CREATE", "read:dead", "tidegate", "0", "MKSTREAM")
    await redis.add("read:dead", "body", bodies(0, 120))
    await redis.call("XREADGROUP", "GROUP", "tidegate", "dead", "COUNT", "110", "STREAMS", "read:dead", ">")
    // So long has it not said a word.
    const ids = (await redis.call("XRANGE", "read:dead", "-", "+", "COUNT", "110")) as ReadonlyArray<[string]>
    const given = ids.map(([id]) => id)
    await redis.call("XCLAIM", "read:dead", "tidegate", "dead", "0", ...given, "IDLE", "60000", "JUSTID")
    await redis.call("XREADGROUP", "GROUP", "tidegate", "tidegate", "COUNT", "2", "STREAMS", "read:dead", ">")
    await redis.call("XDEL", "read:dead", given[0]!)
    const own = (await redis.call("XPENDING", "read:dead", "tidegate", "-", "+", "1", "tidegate")) as [[string]]
    await redis.call("XDEL", "read:dead", own[0][0])
    const source = await subscribe(gateway, redis.port, "read:dead", { claim_after: 10 })
    await state(gateway, source.id, ({ stored_count }) => stored_count === 118)
    await gateway.eventually("all is acknowledged", async () =>
      (await redis.pending("read:dead")) === 0 ? true : null
    )
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Another field is the body, and an entry without it is an object; one that is too large is acknowledged", async ({
    gateway,
    redis
  }) => {
    const source = await subscribe(gateway, redis.port, "read:fields", { body_field: "payload" })
    await redis.add("read:fields", "payload", ["x".repeat(1_048_577), "<order/>"])
    await redis.call("XADD", "read:fields", "*", "kind", "paid", "total", "12345678901234567890")
    await state(gateway, source.id, ({ rejected_count, stored_count }) => rejected_count === 1 && stored_count === 2)
    const rows = await gateway.sql("select convert_from(body, 'utf8') as body from requests where source_id = $1", [
      source.id
    ])
    expect(rows.map(({ body }) => String(body)).toSorted()).toEqual([
      "<order/>",
      '{"kind":"paid","total":"12345678901234567890"}'
    ])
    await gateway.eventually("all is acknowledged", async () =>
      (await redis.pending("read:fields")) === 0 ? true : null
    )
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Entries that lead back to their own stream end", async ({ gateway, redis }) => {
    const source = await subscribe(gateway, redis.port, "read:round")
    const destination = await gateway.destination(
      {
        host: "127.0.0.1",
        port: redis.port,
        tls_mode: "disable",
        stream: "read:round",
        auth_type: "DATABASE_PASSWORD",
        auth: { username: "default", password: "owner" }
      },
      "REDIS_STREAM"
    )
    await gateway.connection(source, destination)
    await redis.add("read:round", "body", ["{}"])
    const shown = await state(gateway, source.id, ({ rejected_count }) => rejected_count !== 0)
    expect(shown).toMatchObject({ stored_count: 11, last_rejection: "a message has led back to the gateway too often" })
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("A source says what it may not do and what is not there, and goes on once it is", async ({ gateway, redis }) => {
    const source = await subscribe(gateway, redis.port, "read:none", { create_group: "never" })
    const failing = async (change: object, says: string) => {
      await gateway.api("PATCH", `/sources/${source.id}`, { config: change })
      const found = await state(
        gateway,
        source.id,
        ({ last_error, status }) => status === "failing" && String(last_error).includes(says)
      )
      expect(found.last_error).not.toContain(auth.password)
    }
    await failing({}, "there is no such stream, or it has no such group: create_group makes both (NOGROUP)")
    await redis.call("SET", "read:text", "a text")
    await failing({ subscription: { stream: "read:text" } }, "the key holds a value that is no stream (WRONGTYPE)")
    await failing({ subscription: { stream: "other" } }, "the user may not use the stream")
    await failing({ auth: { username: "barred", password: auth.password } }, "the user may not use the stream")
    await failing({ auth: { username: "reader", password: "wrong" } }, "the server does not let the source in")
    await gateway.api("PATCH", `/sources/${source.id}`, {
      config: { subscription: { stream: "read:none", create_group: "newest" }, auth: signedIn.auth }
    })
    await state(gateway, source.id, ({ status }) => status === "connected")
    await redis.add("read:none", "body", ["{}"])
    await state(gateway, source.id, ({ stored_count }) => stored_count === 1)
    // The stream is gone, and the group with it: both are made again.
    await redis.call("DEL", "read:none")
    await gateway.eventually("the group is there again", () =>
      redis.pending("read:none").then(
        () => true,
        () => null
      )
    )
    await redis.add("read:none", "body", ["{}"])
    await state(gateway, source.id, ({ stored_count }) => stored_count === 2)
    await gateway.api("DELETE", `/sources/${source.id}`)
  })
})
