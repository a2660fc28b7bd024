import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3"
import { gunzipSync } from "node:zlib"
import { describe, expect } from "vitest"
import type { Config } from "@tidegate/connectors/Settings"
import type { Attempt, Event, Sent } from "../support/Contract.ts"
import { it as base } from "../support/it.ts"
import { configOf } from "../support/Mocks.ts"
import { motoIsMissing, motoRegion, startMoto } from "../support/Moto.ts"

/** The types of Amazon's messaging services, with moto, which checks every signature: where it is installed. */

if (motoIsMissing !== null) console.warn(`the suite of Amazon's messaging services is left out: ${motoIsMissing}`)

const account = "123456789012"

/** How a test's events come, and how they go on. */
interface Sending {
  readonly auth?: object
  readonly auth_type?: string
  readonly contentType?: string
}

const it = base
  .extend("moto", { scope: "file" }, async ({}, { onCleanup }) => {
    const moto = await startMoto()
    onCleanup(() => moto.close())
    return moto
  })
  /** Sends events to a new destination, with batches at once and else one after the other, and returns the first attempt at each. */
  .extend(
    "sent",
    ({ gateway, moto }) =>
      async (
        type: string,
        config: Config,
        payloads: ReadonlyArray<object>,
        {
          auth = moto.key,
          auth_type = "AWS_ACCESS_KEY",
          contentType = "application/json",
          ...connection
        }: Partial<Sent<"POST", "/connections">> & Sending = {}
      ) => {
        const written = configOf(type, { config, auth_type, auth: { ...auth } })
        const destination = await gateway.destination(written, type)
        const source = await gateway.source()
        await gateway.connection(source, destination, [], connection)
        const one = async (payload: object) => {
          const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
            method: "POST",
            headers: { "content-type": contentType },
            body: JSON.stringify(payload)
          })
          const { request_id } = (await answer.json()) as { readonly request_id: string }
          return await gateway.eventually("the attempt", async () => {
            const { attempts, events } = await gateway.traced(request_id)
            return attempts.length > 0 && events[0]?.attempts === 1
              ? { attempt: attempts[0]!, event: events[0], request_id }
              : null
          })
        }
        if (config["batch"] !== undefined) return await Promise.all(payloads.map(one))
        const done = []
        for (const payload of payloads) done.push(await one(payload))
        return done
      }
  )

const order = { id: 7, customer: "c-1", text: "ü & <\"+ %~*('!" }
const succeeded = [null, 200, "SUCCESSFUL"]
const outcomeOf = ({ attempt, event }: { readonly attempt: Attempt; readonly event: Event }) => [
  attempt.error_code,
  attempt.response_status,
  event.status
]

describe.skipIf(motoIsMissing !== null)("Amazon's messaging services in moto", () => {
  it("AWS_SQS sends the payload, with the ids of its event as attributes", async ({ moto, sent }) => {
    const queue_url = await moto.queue("orders")
    const [done] = await sent("AWS_SQS", { queue_url, region: motoRegion }, [order])
    expect(outcomeOf(done!)).toEqual(succeeded)
    const [message, ...more] = await moto.messages(queue_url)
    expect(more).toEqual([])
    expect(message!.Body).toBe(JSON.stringify(order))
    expect(message!.MessageAttributes).toMatchObject({
      event_id: { DataType: "String", StringValue: done!.event.id },
      request_id: { StringValue: done!.request_id },
      content_type: { StringValue: "application/json" }
    })
  })

  it("AWS_SQS keeps the order of a connection's key in a FIFO queue, which recognises a repeated event", async ({
    gateway,
    moto,
    sent
  }) => {
    const queue_url = await moto.queue("orders.fifo", { FifoQueue: "true" })
    const payloads = [order, { ...order, id: 8 }]
    const done = await sent("AWS_SQS", { queue_url, region: motoRegion }, payloads, {
      ordering: { key: "body.customer", on_failure: "block" }
    })
    expect(done.map(outcomeOf)).toEqual([succeeded, succeeded])
    expect(await moto.count(queue_url)).toBe(2)
    const [first] = done
    await gateway.api("POST", `/events/${first!.event.id}/retry`)
    await gateway.eventually("the second attempt", async () => {
      const { attempts } = await gateway.traced(first!.request_id)
      return attempts.length === 2 && attempts.every(({ response_status }) => response_status === 200) ? true : null
    })
    expect(await moto.count(queue_url)).toBe(2)
    const inQueue = await moto.messages(queue_url)
    expect(inQueue.map(({ Attributes, Body }) => [JSON.parse(Body).id, Attributes["MessageDeduplicationId"]])).toEqual(
      done.map(({ event }, i) => [payloads[i]!.id, event.id])
    )
    const [group, ...others] = new Set(inQueue.map(({ Attributes }) => Attributes["MessageGroupId"]))
    expect([group, others]).toEqual([expect.stringMatching(/^[\w-]{11}$/), []])
  })

  it("AWS_SNS publishes to a topic, with subject and attributes", async ({ moto, sent }) => {
    const topic_arn = (await moto.sns({ Action: "CreateTopic", Name: "orders" }))("TopicArn")
    const queue = await moto.queue("subscribed")
    await moto.sns({
      Action: "Subscribe",
      TopicArn: topic_arn,
      Protocol: "sqs",
      Endpoint: `arn:aws:sqs:${motoRegion}:${account}:subscribed`
    })
    // Of a form, moto signs what Python would have sent, and that is another encoding of spaces.
    const spaceless = { ...order, text: "ü&<+%" }
    const config = { topic_arn, endpoint: moto.origin, subject: "Order-{{payload.id}}-ü+&" }
    const [done] = await sent("AWS_SNS", config, [spaceless])
    expect(outcomeOf(done!)).toEqual(succeeded)
    const [message] = await moto.messages(queue)
    expect(JSON.parse(message!.Body)).toMatchObject({
      TopicArn: topic_arn,
      Subject: "Order-7-ü+&",
      Message: JSON.stringify(spaceless),
      MessageAttributes: { event_id: { Type: "String", Value: done!.event.id } }
    })
  })

  it("AWS_EVENTBRIDGE puts an event that a rule finds by source, detail type and payload", async ({ moto, sent }) => {
    await moto.json("events", "CreateEventBus", { Name: "shop" })
    const queue = await moto.queue("ruled")
    await moto.json("events", "PutRule", {
      Name: "paid",
      EventBusName: "shop",
      EventPattern: JSON.stringify({
        source: ["com.example.shop"],
        "detail-type": ["order.7"],
        detail: { payload: { customer: ["c-1"] } }
      })
    })
    await moto.json("events", "PutTargets", {
      Rule: "paid",
      EventBusName: "shop",
      Targets: [{ Id: "queue", Arn: `arn:aws:sqs:${motoRegion}:${account}:ruled` }]
    })
    const config = {
      region: motoRegion,
      endpoint: moto.origin,
      event_bus: "shop",
      source: "com.example.shop",
      detail_type: "order.{{payload.id}}"
    }
    const [done] = await sent("AWS_EVENTBRIDGE", config, [order])
    expect(outcomeOf(done!)).toEqual(succeeded)
    const [message] = await moto.messages(queue)
    expect(JSON.parse(message!.Body)).toMatchObject({
      source: "com.example.shop",
      "detail-type": "order.7",
      detail: { event_id: done!.event.id, payload: order }
    })
  })

  it("AWS_KINESIS puts records with the ordering key as their partition key", async ({ moto, sent }) => {
    await moto.json("kinesis", "CreateStream", { StreamName: "orders", ShardCount: 1 })
    const payloads = [order, { ...order, id: 8 }]
    const done = await sent(
      "AWS_KINESIS",
      { region: motoRegion, endpoint: moto.origin, stream: "orders", partition_key: null },
      payloads,
      { ordering: { key: "body.customer", on_failure: "block" } }
    )
    expect(done.map(outcomeOf)).toEqual([succeeded, succeeded])
    const { ShardIterator } = await moto.json("kinesis", "GetShardIterator", {
      StreamName: "orders",
      ShardId: "shardId-000000000000",
      ShardIteratorType: "TRIM_HORIZON"
    })
    const { Records } = await moto.json("kinesis", "GetRecords", { ShardIterator })
    const documents = Records.map(({ Data }) => JSON.parse(Buffer.from(Data, "base64").toString()))
    expect(documents.map(({ event_id, payload }) => [event_id, payload])).toEqual(
      done.map(({ event }, i) => [event.id, payloads[i]])
    )
    const [key, ...others] = new Set(Records.map(({ PartitionKey }) => PartitionKey))
    expect([key, others]).toEqual([expect.stringMatching(/^[\w-]{11}$/), []])
  })

  it("Several events in one call arrive, each with its own result", async ({ moto, sent }) => {
    const payloads = Array.from({ length: 12 }, (_, id) => ({ ...order, id }))
    const batch = { max_wait_ms: 2_000, max_count: 6 }
    const queue_url = await moto.queue("batched")
    const published = await moto.queue("published")
    const topic_arn = (await moto.sns({ Action: "CreateTopic", Name: "batched" }))("TopicArn")
    await moto.sns({
      Action: "Subscribe",
      TopicArn: topic_arn,
      Protocol: "sqs",
      Endpoint: `arn:aws:sqs:${motoRegion}:${account}:published`
    })
    await moto.json("kinesis", "CreateStream", { StreamName: "batched", ShardCount: 1 })
    await moto.json("events", "CreateEventBus", { Name: "batched" })
    const atMoto = { region: motoRegion, endpoint: moto.origin }
    const of = {
      AWS_SQS: { queue_url, region: motoRegion },
      AWS_KINESIS: { ...atMoto, stream: "batched", partition_key: null },
      AWS_EVENTBRIDGE: { ...atMoto, event_bus: "batched", source: "com.example.shop", detail_type: "order" }
    }
    for (const [type, config] of Object.entries(of)) {
      const done = await sent(type, { ...config, batch }, payloads)
      expect(done.map(outcomeOf)).toEqual(payloads.map(() => succeeded))
    }
    await moto.unchecked(payloads.length)
    const done = await sent("AWS_SNS", { topic_arn, endpoint: moto.origin, batch }, payloads)
    await moto.unchecked(0)
    expect(done.map(outcomeOf)).toEqual(payloads.map(() => succeeded))
    expect([await moto.count(queue_url), await moto.count(published)]).toEqual([12, 12])
    const { ShardIterator } = await moto.json("kinesis", "GetShardIterator", {
      StreamName: "batched",
      ShardId: "shardId-000000000000",
      ShardIteratorType: "TRIM_HORIZON"
    })
    const { Records } = await moto.json("kinesis", "GetRecords", { ShardIterator })
    const ids = Records.map(({ Data }) => JSON.parse(Buffer.from(Data, "base64").toString()).payload.id)
    expect(ids.toSorted((a: number, b: number) => a - b)).toEqual(payloads.map(({ id }) => id))
  })

  it("Several events are lines of one object of S3, compressed, and Amazon's client reads it", async ({
    moto,
    sent
  }) => {
    const payloads = Array.from({ length: 12 }, (_, id) => ({ ...order, id }))
    const client = new S3Client({
      region: motoRegion,
      endpoint: moto.origin,
      forcePathStyle: true,
      credentials: { accessKeyId: moto.key.access_key_id, secretAccessKey: moto.key.secret_access_key }
    })
    const Bucket = "batched"
    await client.send(
      new CreateBucketCommand({ Bucket, CreateBucketConfiguration: { LocationConstraint: motoRegion } })
    )
    const place = { region: motoRegion, endpoint: moto.origin, force_path_style: true, bucket: Bucket }
    const batch = { max_wait_ms: 2_000, max_count: 6, compression: "gzip" }
    const done = await sent("OBJECT_STORE_S", { ...place, batch }, payloads, {
      auth_type: "OBJECT_STORE_S_ACCESS_KEY"
    })
    expect(done.map(outcomeOf)).toEqual(payloads.map(() => succeeded))
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }))
    expect(Contents.length).toBeLessThan(payloads.length)
    const ids = []
    for (const { Key } of Contents) {
      const object = await client.send(new GetObjectCommand({ Bucket, Key }))
      expect([object.ContentType, object.ContentEncoding]).toEqual(["application/x-ndjson", "gzip"])
      const text = gunzipSync((await object.Body?.transformToByteArray()) ?? "").toString()
      ids.push(
        ...text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line).payload.id as number)
      )
    }
    expect(ids.toSorted((a, b) => a - b)).toEqual(payloads.map(({ id }) => id))
  })

  it("HTTP calls a service as a role that is assumed there, and is refused without the right to assume it", async ({
    moto,
    sent
  }) => {
    const queue_url = await moto.queue("assumed")
    const of = {
      region: motoRegion,
      service: "sqs",
      amz_target: "AmazonSQS.SendMessage",
      role_arn: moto.role,
      sts_endpoint: `${moto.origin}/`
    }
    const config = { url: `${moto.origin}/`, path_forwarding_disabled: true }
    const by = { auth_type: "AWS_SIGV4", contentType: "application/x-amz-json-1.0" }
    const call = { QueueUrl: queue_url, MessageBody: "as a role" }
    const [done] = await sent("HTTP", config, [call], { ...by, auth: { ...moto.key, ...of } })
    expect(outcomeOf(done!)).toEqual(succeeded)
    const [message, ...more] = await moto.messages(queue_url)
    expect([message!.Body, more]).toEqual(["as a role", []])
    const rules = [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 3 }] as const
    const [refused] = await sent("HTTP", config, [call], {
      ...by,
      auth: { ...moto.keyWithoutRights, ...of },
      rules: [...rules]
    })
    expect([refused!.event.error_code, refused!.event.failure_message]).toEqual([
      "OAUTH2_HANDSHAKE_FAILED",
      expect.stringContaining("AccessDenied")
    ])
  })

  it("Refused key, right and target are named, and no refusal of them is final", async ({ moto, sent }) => {
    const queue_url = await moto.queue("closed")
    const failure = async (config: Config, auth: object) => {
      const [done] = await sent("AWS_SQS", { queue_url, region: motoRegion, ...config }, [order], {
        auth,
        rules: [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 3 }]
      })
      return [done!.event.error_code, done!.event.status, done!.event.failure_message]
    }
    const wrong = { ...moto.key, secret_access_key: "another" }
    expect(await failure({}, wrong)).toEqual([
      "AUTH_REJECTED",
      "SCHEDULED",
      expect.stringContaining("SignatureDoesNotMatch")
    ])
    const noRight = await failure({}, moto.keyWithoutRights)
    expect(noRight).toEqual(["AUTH_REJECTED", "SCHEDULED", expect.stringContaining("AccessDenied")])
    const missing = await failure({ queue_url: queue_url.replace(/closed$/, "none") }, moto.key)
    expect(missing).toEqual(["BAD_RESPONSE", "SCHEDULED", expect.stringMatching(/NonExistentQueue|QueueDoesNotExist/)])
    expect(await moto.messages(queue_url)).toEqual([])
  })
})
