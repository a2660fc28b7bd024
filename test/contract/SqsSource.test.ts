import { describe, expect } from "vitest"
import type { Gateway } from "../support/Gateway.ts"
import { ownIt } from "../support/it.ts"
import { type MotoKey, motoIsMissing, motoRegion, startMoto } from "../support/Moto.ts"

/** Sources of type AWS_SQS against moto, which checks every signature and keeps messages invisible: where it is installed. */

if (motoIsMissing !== null) console.warn(`the suite of sources in SQS is left out: ${motoIsMissing}`)

const it = ownIt.extend("moto", { scope: "file" }, async ({}, { onCleanup }) => {
  const moto = await startMoto()
  onCleanup(() => moto.close())
  return moto
})
type Moto = Awaited<ReturnType<typeof startMoto>>

const subscribe = (gateway: Gateway, queue_url: string, key: MotoKey) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "AWS_SQS",
    config: { subscription: { queue_url, region: motoRegion, visibility_timeout: 10 }, auth: { ...key } }
  })

const state = (gateway: Gateway, id: string, good: (state: object & { readonly [name: string]: unknown }) => boolean) =>
  gateway.eventually("the subscription is so", async () => {
    const { subscription_state } = await gateway.api("GET", `/sources/${id}`)
    return good({ ...subscription_state! }) ? subscription_state! : null
  })

const send = async ({ json }: Moto, QueueUrl: string, from: number, count: number, rest: object = {}) => {
  for (let first = from; first < from + count; first += 10) {
    const Entries = Array.from({ length: Math.min(10, from + count - first) }, (_, n) => ({
      Id: String(n),
      MessageBody: `{"n":${first + n}}`,
      ...rest
    }))
    await json("sqs", "SendMessageBatch", { QueueUrl, Entries })
  }
}

/** How many messages are in a queue, also those that somebody has received and not deleted. */
const left = async ({ json }: Moto, QueueUrl: string) => {
  const AttributeNames = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
  const { Attributes } = await json("sqs", "GetQueueAttributes", { QueueUrl, AttributeNames })
  return AttributeNames.reduce((sum, name) => sum + Number(Attributes[name]), 0)
}

describe.skipIf(motoIsMissing !== null)("Source in SQS (skipped if moto is not installed)", () => {
  it("Each message of the queue is one request, after kill -9 of the gateway", async ({ gateway, moto }) => {
    const queue = await moto.queue("orders")
    const source = await subscribe(gateway, queue, moto.key)
    const stored = async () =>
      Number((await gateway.sql("select count(*) as n from requests where source_id = $1", [source.id]))[0]!["n"])
    const more = (than: number) =>
      gateway.eventually(`more than ${than} are stored`, async () => ((await stored()) > than ? true : null))
    await send(moto, queue, 0, 200)
    await more(20)
    await gateway.restart("SIGKILL")
    await send(moto, queue, 200, 200)
    await more(399)
    await gateway.eventually("all are deleted", async () => ((await left(moto, queue)) === 0 ? true : null))
    const numbers = await gateway.sql(
      "select count(*) as n, count(distinct convert_from(body, 'utf8')) as kinds from requests where source_id = $1",
      [source.id]
    )
    expect(numbers.map(({ kinds, n }) => [Number(n), Number(kinds)])).toEqual([[400, 400]])
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Messages of a group of a FIFO queue become requests in their order, with their group", async ({
    gateway,
    moto
  }) => {
    const queue = await moto.queue("orders.fifo", { FifoQueue: "true", ContentBasedDeduplication: "true" })
    // While one message of a group is under way, moto gives a call that waits no other one until the call ends.
    await send(moto, queue, 0, 3, { MessageGroupId: "customer-7" })
    const source = await subscribe(gateway, queue, moto.key)
    await state(gateway, source.id, ({ stored_count }) => stored_count === 3)
    const rows = await gateway.sql(
      "select convert_from(body, 'utf8')::json ->> 'n' as n from requests where source_id = $1 order by id",
      [source.id]
    )
    expect(rows.map(({ n }) => Number(n))).toEqual([0, 1, 2])
    const [request] = await gateway.requests(source.id)
    expect((await gateway.api("GET", `/requests/${request!.id}`)).data?.headers).toMatchObject({
      "x-gateway-message-group-id": "customer-7"
    })
    await gateway.eventually("all are deleted", async () => ((await left(moto, queue)) === 0 ? true : null))
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Messages that lead back to their own queue end, and are deleted", async ({ gateway, moto }) => {
    const queue = await moto.queue("round")
    const source = await subscribe(gateway, queue, moto.key)
    const destination = await gateway.destination(
      { queue_url: queue, region: motoRegion, auth_type: "AWS_ACCESS_KEY", auth: { ...moto.key } },
      "AWS_SQS"
    )
    await gateway.connection(source, destination)
    await send(moto, queue, 0, 1)
    const shown = await state(gateway, source.id, ({ rejected_count }) => rejected_count !== 0)
    expect(shown).toMatchObject({ stored_count: 11, last_rejection: "a message has led back to the gateway too often" })
    await gateway.eventually("all are deleted", async () => ((await left(moto, queue)) === 0 ? true : null))
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("A source says what its key may not do, and that there is no such queue", async ({ gateway, moto }) => {
    const queue = await moto.queue("closed")
    const source = await subscribe(gateway, queue, moto.keyWithoutRights)
    const barred = await state(gateway, source.id, ({ status }) => status === "failing")
    expect(barred.last_error).toContain("the key may not receive and delete messages of this queue")
    await gateway.api("PATCH", `/sources/${source.id}`, {
      config: { subscription: { queue_url: queue.replace("closed", "other") }, auth: { ...moto.key } }
    })
    const none = await state(gateway, source.id, ({ status }) => status === "failing")
    expect(none.last_error).toContain("there is no such queue")
    await gateway.api("DELETE", `/sources/${source.id}`)
  })
})
