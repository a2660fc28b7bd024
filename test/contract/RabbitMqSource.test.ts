import { Effect, Exit, Scope } from "effect"
import { describe, expect } from "vitest"
import { auth } from "../../packages/foreign-databases/test/Brokering.ts"
import { ownRabbit, program } from "../../packages/foreign-databases/test/OwnRabbit.ts"
import type { Source } from "../support/Contract.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Sources of type RABBITMQ against a real RabbitMQ, where one is installed (`apt-get install rabbitmq-server`). */

const place = (port: number) => ({ host: "127.0.0.1", port, vhost: "shop", tls_mode: "disable" as const })

const subscribe = (gateway: Gateway, port: number, queue: string) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "RABBITMQ",
    config: { subscription: { ...place(port), queue }, auth }
  })

const stateOf = async (gateway: Gateway, id: string) => (await gateway.api("GET", `/sources/${id}`)).subscription_state!

const messages = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `m${from + n}`, body: Buffer.from(`{"n":${from + n}}`) }))

const storedOf = async (gateway: Gateway, id: string): Promise<number> =>
  Number((await gateway.sql("select count(*) as n from requests where source_id = $1", [id]))[0]!["n"])

const more = (gateway: Gateway, { id }: Pick<Source, "id">, than: number) =>
  gateway.eventually(`more than ${than} are stored`, async () => ((await storedOf(gateway, id)) > than ? true : null))

const queues = ["read classic", "read quorum"]

const it = gatewayIt
  .extend("rabbit", { scope: "file" }, async ({}, { onCleanup }) => {
    const scope = Scope.makeUnsafe()
    onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    return Effect.runPromise(ownRabbit.pipe(Scope.provide(scope)))
  })
  /** The sources of the queues. Gateway and broker are killed once for both, amid their messages. */
  .extend("disturbed", { scope: "file" }, async ({ gateway, rabbit }) => {
    const sources = await Promise.all(
      queues.map(async (queue) => [queue, await subscribe(gateway, rabbit.port, queue)] as const)
    )
    const publish = (from: number, count: number) =>
      Promise.all(queues.map((queue) => rabbit.published(queue, messages(from, count))))
    const moreOfEach = (than: number) => Promise.all(sources.map(([, source]) => more(gateway, source, than)))
    await publish(0, 400)
    await moreOfEach(50)
    await gateway.restart("SIGKILL")
    await moreOfEach(300)
    await publish(400, 400)
    await Effect.runPromise(Effect.andThen(rabbit.kill, rabbit.start))
    await publish(800, 200)
    return new Map(sources)
  })

describe.skipIf(program === undefined)("Source in RabbitMQ (skipped if it is not installed)", () => {
  for (const queue of queues) {
    const title = `Each message of the queue ${queue} is one request, after kill -9 of the gateway and of the broker`
    it(title, async ({ disturbed, gateway, rabbit }) => {
      const source = disturbed.get(queue)!
      await more(gateway, source, 999)
      const numbers = await gateway.sql(
        "select count(*) as n, count(distinct convert_from(body, 'utf8')) as kinds from requests where source_id = $1",
        [source.id]
      )
      expect(numbers.map(({ kinds, n }) => [Number(n), Number(kinds)])).toEqual([[1_000, 1_000]])
      await gateway.eventually("all is settled", async () => {
        const { stored_count } = await stateOf(gateway, source.id)
        return stored_count === 1_000 ? true : null
      })
      // What is still there is delivered when the source lets go.
      await gateway.api("DELETE", `/sources/${source.id}`)
      await gateway.eventually("the queue is empty", async () =>
        (await rabbit.taken(queue)).length === 0 ? true : null
      )
      expect(await storedOf(gateway, source.id)).toBe(1_000)
    })
  }

  it("A message that is too large is dead-lettered by the broker", async ({ gateway, rabbit }) => {
    const source = await subscribe(gateway, rabbit.port, "read classic")
    await rabbit.published("read classic", [{ id: "large", body: Buffer.alloc(1_048_577) }, ...messages(0, 1)])
    const dead = await gateway.eventually("it is dead-lettered", async () => {
      const taken = await rabbit.taken("dead")
      return taken.length > 0 ? taken : null
    })
    expect(dead.map(({ id }) => id)).toEqual(["large"])
    await gateway.eventually("both are counted", async () => {
      const { rejected_count, stored_count } = await stateOf(gateway, source.id)
      return rejected_count === 1 && stored_count === 1 ? true : null
    })
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Messages that lead back to their own queue end", async ({ gateway, rabbit }) => {
    const source = await subscribe(gateway, rabbit.port, "kept")
    const destination = await gateway.destination(
      {
        ...place(rabbit.port),
        exchange: "orders",
        routing_key: "order.again",
        auth_type: "DATABASE_PASSWORD",
        auth
      },
      "RABBITMQ"
    )
    await gateway.connection(source, destination)
    await rabbit.published("kept", messages(0, 1))
    const state = await gateway.eventually("the last one is rejected", async () => {
      const found = await stateOf(gateway, source.id)
      return found.rejected_count > 0 ? found : null
    })
    expect(state).toMatchObject({ stored_count: 11, last_rejection: "a message has led back to the gateway too often" })
    await gateway.api("DELETE", `/sources/${source.id}`)
  })
})
