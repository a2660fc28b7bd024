import { describe, expect, it } from "@effect/vitest"
import { AwsV4Signer } from "aws4fetch"
import { gzipSync } from "node:zlib"
import { type AttemptFacts, type HttpSender, type OpenAuth, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { event, faultsOf, opened } from "./Opened.ts"
import recorded from "./vectors/AwsSdk.json" with { type: "json" }

/** What the types of Amazon's messaging services send, beside what Amazon's own clients send. */

const types = ["AWS_SQS", "AWS_SNS", "AWS_EVENTBRIDGE", "AWS_KINESIS"] as const
type Type = (typeof types)[number]

const key = { access_key_id: "AKIDEXAMPLE", secret_access_key: "a-secret" }
const authOf = (settings: OpenAuth["settings"]): OpenAuth => ({ headers: {}, signing: null, settings })

const queue = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
const topic = "arn:aws:sns:eu-central-1:123456789012:orders"
const place: Readonly<Record<Type, Config>> = {
  AWS_SQS: { queue_url: queue },
  AWS_SNS: { topic_arn: topic },
  AWS_EVENTBRIDGE: { region: "eu-central-1", source: "com.example.shop", detail_type: "order.{{payload.id}}" },
  AWS_KINESIS: { region: "eu-central-1", stream: "orders" }
}

const open = (type: Type, config: Config = {}, auth = authOf(key)): HttpSender =>
  opened(type, { ...place[type], ...config }, auth)

const prepare = (sender: HttpSender, message: Message, facts: Partial<AttemptFacts> = {}) =>
  sender.prepare(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2), ...facts }))

const request = (sender: HttpSender, message: Message, facts: Partial<AttemptFacts> = {}) => {
  const made = prepare(sender, message, facts)
  if (made instanceof Refusal) throw new Error(`${made.code}: ${made.message}`)
  const header = (name: string) => made.headers[made.headers.indexOf(name) + 1]
  return { ...made, text: Buffer.from(made.body).toString(), header }
}

const refusal = (sender: HttpSender, message: Message): Refusal => {
  const made = prepare(sender, message)
  if (!(made instanceof Refusal)) throw new Error(`it goes to ${made.url}`)
  return made
}

/** The members of a call: those of the form, or of the JSON object. */
const membersOf = (type: Type, text: string): Readonly<Record<string, unknown>> => {
  if (type === "AWS_SNS") return Object.fromEntries(new URLSearchParams(text))
  const call = JSON.parse(text)
  return type === "AWS_EVENTBRIDGE" ? call.Entries[0] : call
}

const called = (type: Type, config: Config, message: Message, facts: Partial<AttemptFacts> = {}) =>
  membersOf(type, request(open(type, config), message, facts).text)

/** What a message of an event says, and what is beside it. */
const textIn = (type: Type, call: Readonly<Record<string, unknown>>): string =>
  type === "AWS_KINESIS"
    ? Buffer.from(String(call["Data"]), "base64").toString()
    : String(call[{ AWS_SQS: "MessageBody", AWS_SNS: "Message", AWS_EVENTBRIDGE: "Detail" }[type]])

const fifo: Partial<Record<Type, Config>> = {
  AWS_SQS: { queue_url: `${queue}.fifo` },
  AWS_SNS: { topic_arn: `${topic}.fifo` }
}

describe.each(types)("Call of %s", (type) => {
  const ordered: Readonly<Record<Type, Config>> = {
    AWS_SQS: { ...fifo.AWS_SQS, message_group_id: "{{payload.id}}" },
    AWS_SNS: { ...fifo.AWS_SNS, message_group_id: "{{payload.id}}", subject: "Order {{payload.id}} ü+&" },
    AWS_EVENTBRIDGE: { event_bus: "orders" },
    AWS_KINESIS: { partition_key: "{{payload.id}}" }
  }
  const payload = String.raw`{"id":7,"text":"ü & <\"+ %~*('!"}`

  it("Call has the members that Amazon's own client sends", () => {
    const made = request(open(type, ordered[type]), event(payload))
    const expected = recorded[type]
    expect([made.method, new URL(made.url).pathname]).toEqual([expected.method, expected.path])
    expect(made.header("content-type")?.split(";")[0]).toBe(expected.contentType)
    if (expected.target !== null) expect(made.header("x-amz-target")).toBe(expected.target)
    expect(membersOf(type, made.text)).toEqual(membersOf(type, expected.body))
  })

  it("Call is signed for its service and region, with all of its headers", async () => {
    const timestampSeconds = Date.UTC(2026, 0, 2) / 1_000
    for (const session_token of [undefined, "a-session-token"]) {
      const sender = open(type, {}, authOf({ ...key, ...(session_token === undefined ? {} : { session_token }) }))
      const made = request(sender, event({ id: 7 }))
      const { headers } = await sender.complete!(made, factsOf(event({}), { timestampSeconds }))
      const of = (name: string) => headers[headers.indexOf(name) + 1]!
      const signed = ["content-type", "x-amz-target"].filter((name) => headers.includes(name))
      const other = await new AwsV4Signer({
        method: "POST",
        url: made.url,
        headers: signed.map((name) => [name, of(name)]),
        body: Buffer.from(made.body),
        accessKeyId: key.access_key_id,
        secretAccessKey: key.secret_access_key,
        ...(session_token === undefined ? {} : { sessionToken: session_token }),
        service: { AWS_SQS: "sqs", AWS_SNS: "sns", AWS_EVENTBRIDGE: "events", AWS_KINESIS: "kinesis" }[type],
        region: "eu-central-1",
        datetime: "20260102T000000Z",
        allHeaders: true
      }).sign()
      expect(of("authorization")).toBe(other.headers.get("authorization")?.replaceAll(/,\s*/g, ", "))
      expect(headers.includes("x-amz-security-token")).toBe(session_token !== undefined)
    }
  })

  it("Call without a key is not signed", () => {
    for (const settings of [{}, { ...key, disabled: true }]) {
      expect(open(type, {}, authOf(settings))).not.toHaveProperty("complete")
    }
  })

  it("Call is of a template's JSON, whose placeholders are escaped, and of its text", () => {
    const of = (body_template: string) => textIn(type, called(type, { body_template }, event({ id: 7, s: '"}' })))
    expect(JSON.parse(of('{"n":{{payload.id}},"s":"{{payload.s}}"}'))).toEqual({ n: 7, s: '"}' })
    if (type === "AWS_EVENTBRIDGE") return
    expect(of("order {{payload.id}}")).toBe("order 7")
    expect(refusal(open(type, { body_template: '{"a":{{payload.a}}' }), event({ a: 1 })).code).toBe("TEMPLATE_ERROR")
  })

  it("Call without metadata has the payload alone", () => {
    const call = called(type, { include_metadata: false }, event(payload))
    expect(textIn(type, call)).toBe(payload)
    expect(JSON.stringify(call)).not.toContain("src_1")
  })

  it("Message that is larger than the service can take is refused before it is sent", () => {
    const bytes = (type === "AWS_KINESIS" ? 10 : 1) * 1024 * 1024
    const { code, message } = refusal(open(type), event({ id: 7, text: "x".repeat(bytes) }))
    expect([code, message]).toEqual(["REQUEST_TOO_LARGE", expect.stringContaining(`at most ${bytes}`)])
  })

  it("Call goes to another place only where the settings say so", () => {
    const hostOf = (config: Config) => new URL(request(open(type, config), event({ id: 7 })).url).host
    const service = { AWS_SQS: "sqs", AWS_SNS: "sns", AWS_EVENTBRIDGE: "events", AWS_KINESIS: "kinesis" }[type]
    expect(hostOf({})).toBe(`${service}.eu-central-1.amazonaws.com`)
    const own: Config =
      type === "AWS_SQS"
        ? { queue_url: "http://queues.test:9324/000000000000/orders", region: "elastic" }
        : { endpoint: "http://queues.test:9324" }
    expect(hostOf(own)).toBe("queues.test:9324")
    const { leadsTo, settings } = connectorOf(type)!
    const to = (config: Config) =>
      leadsTo!(Object.fromEntries(Object.keys(settings).map((name) => [name, config[name] ?? null])))
    expect([to({ ...place[type] }), to({ ...place[type], ...own })]).toEqual(["Amazon", "http://queues.test:9324"])
  })

  it("Clock that is wrong is named", () => {
    const body = {
      __type: "x#InvalidSignatureException",
      message: "Signature expired: 20260102T000000Z is now earlier"
    }
    const answer = { status: 403, headers: {}, body: Buffer.from(JSON.stringify(body)), bodyTruncated: false }
    expect(open(type).judge(answer)).toMatchObject({ final: false, message: expect.stringContaining("clocks") })
  })
})

describe.each(["AWS_SQS", "AWS_SNS"] as const)("Message of %s", (type) => {
  const idsOf = (config: Config, facts: Partial<AttemptFacts> = {}, payload: unknown = { id: "7" }) => {
    const { MessageDeduplicationId: id, MessageGroupId: group } = called(type, config, event(payload), facts)
    return { id, group }
  }

  it("Message to a target without an order has no ids of its own, unless a group is set", () => {
    expect(idsOf({}, { orderingKey: "kkkkkkkkkkk" })).toEqual({})
    expect(idsOf({ message_group_id: "{{payload.id}}" })).toEqual({ group: "7" })
  })

  it("Message to a FIFO target has the event's id, and the ordering key or else the destination as its group", () => {
    const config = fifo[type]!
    expect(idsOf(config, { webhookId: "evt_0" })).toEqual({ id: "evt_0", group: "des_1" })
    expect(idsOf(config, { orderingKey: "kkkkkkkkkkk" })).toEqual({ id: "evt_1", group: "kkkkkkkkkkk" })
    // The call of a workflow step.
    expect(idsOf(config, { destinationId: "", connectionId: "" })).toEqual({ id: "evt_1", group: "req_1" })
    const templates = { message_group_id: "g-{{payload.id}}", message_deduplication_id: "d-{{payload.id}}" }
    expect(idsOf({ ...config, ...templates }, { orderingKey: "k" })).toEqual({ id: "d-7", group: "g-7" })
  })

  it("Ids that the service would refuse become hashes, which are equal for equal texts", () => {
    const config = { ...fifo[type]!, message_group_id: "{{payload.id}}" }
    const group = (id: string) => idsOf(config, {}, { id }).group
    for (const id of ["two words", "ü", "x".repeat(129)]) {
      expect(group(id)).toMatch(/^sha256-[\da-f]{64}$/)
      expect(group(id)).toBe(group(id))
    }
    expect(group("ü")).not.toBe(group("ä"))
    expect(group("!~")).toBe("!~")
    expect(refusal(open(type, config), event({})).message).toContain("config.message_group_id")
  })

  it("Bytes that a message cannot have are sent as base64, and an attribute says so", () => {
    for (const body of [Buffer.from([0xff, 0xfe]), Buffer.from("a\u0000b"), gzipSync("{}")]) {
      const message = { ...event(""), body, headers: { "content-encoding": "gzip" } }
      const call = called(type, {}, message)
      expect(Buffer.from(textIn(type, call), "base64")).toEqual(body)
      expect(JSON.stringify(call)).toContain("payload_encoding")
      expect(JSON.stringify(call).includes("payload_content_encoding")).toBe(body[0] === 0x1f)
    }
    expect(refusal(open(type), event("")).message).toContain("empty")
    const control = refusal(open(type, { body_template: "{{payload.id}}" }), event({ id: "a\u0000b" }))
    expect(control.code).toBe("TEMPLATE_ERROR")
  })

  it("Attributes are at most ten, and none is empty", () => {
    const message = {
      ...event(""),
      body: gzipSync("{}"),
      headers: { "content-encoding": "gzip", "content-type": "a/b" }
    }
    const attributes = (facts: Partial<AttemptFacts>): ReadonlyArray<string> => {
      const call = called(type, {}, message, facts)
      return type === "AWS_SQS"
        ? Object.keys(call["MessageAttributes"] as object)
        : Object.entries(call).flatMap(([name, value]) => (name.endsWith(".Name") ? [String(value)] : []))
    }
    expect(attributes({})).toHaveLength(9)
    expect(attributes({ connectionId: "" })).not.toContain("connection_id")
  })

  it("Deduplication id is refused where the target keeps no order", () => {
    const config = { message_deduplication_id: "{{event_id}}" }
    expect(faultsOf(type, { ...place[type], ...config })).toEqual([
      "config.message_deduplication_id is for FIFO targets, whose names end in .fifo"
    ])
    expect(faultsOf(type, { ...place[type], ...fifo[type], ...config })).toEqual([])
  })
})

describe("Region of a queue", () => {
  const faults = (queue_url: string, region: string | null) => faultsOf("AWS_SQS", { queue_url, region })

  it.each([
    [queue, null, []],
    [queue, "eu-central-1", []],
    [queue, "us-east-1", ["config.region must be that in config.queue_url, or null"]],
    ["https://vpce-1-a.sqs.eu-central-1.vpce.amazonaws.com/123456789012/orders", null, []],
    ["https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders", null, []],
    ["https://queues.test/000000000000/orders", "eu-central-1", []],
    [
      "https://queues.test/000000000000/orders",
      null,
      ["config.region is required: config.queue_url does not name the region"]
    ]
  ])("Region of %s, written as %s, has the expected faults", (url, region, expected) => {
    expect(faults(url, region)).toEqual(expected)
  })
})

it("Subject is one line of fewer than 100 characters, and left out if it is empty", () => {
  const subject = (id: unknown) => called("AWS_SNS", { subject: "{{payload.id}}" }, event({ id }))["Subject"]
  expect(subject("a\r\nb")).toBe("a b")
  expect(subject("x".repeat(200))).toBe(`${"x".repeat(98)}…`)
  expect(subject(" ")).toBeUndefined()
})

describe("Event of AWS_EVENTBRIDGE", () => {
  it.each(["[1]", "text", "7", "null"])(
    "Event whose payload %s is no object needs the metadata around it",
    (payload) => {
      const { code, message } = refusal(open("AWS_EVENTBRIDGE", { include_metadata: false }), event(payload))
      expect([code, message]).toEqual(["TEMPLATE_ERROR", expect.stringContaining("config.include_metadata")])
      expect(JSON.parse(textIn("AWS_EVENTBRIDGE", called("AWS_EVENTBRIDGE", {}, event(payload))))).toHaveProperty(
        "payload"
      )
    }
  )

  it("Event of a template must be an object", () => {
    const { message } = refusal(open("AWS_EVENTBRIDGE", { body_template: "[{{payload.id}}]" }), event({ id: 7 }))
    expect(message).toBe("config.body_template does not make a JSON object of this event")
  })

  it.each([
    ["source", 256],
    ["detail_type", 128]
  ])("Event whose %s would have more than %i characters is refused, and never cut", (name, most) => {
    const sender = open("AWS_EVENTBRIDGE", { detail_type: "order", [name]: "{{payload.id}}" })
    expect(prepare(sender, event({ id: "x".repeat(most) }))).not.toBeInstanceOf(Refusal)
    expect(refusal(sender, event({ id: "x".repeat(most + 1) })).message).toContain(
      `config.${name} makes more than ${most}`
    )
  })
})

describe("Record of AWS_KINESIS", () => {
  const keyOf = (config: Config, facts: Partial<AttemptFacts>, id = "7") =>
    called("AWS_KINESIS", config, event({ id }), facts)["PartitionKey"]

  it("Record has the partition key of its template, or the ordering key, or the event's id", () => {
    expect(keyOf({}, {})).toBe("evt_1")
    expect(keyOf({}, { orderingKey: "kkkkkkkkkkk" })).toBe("kkkkkkkkkkk")
    expect(keyOf({ partition_key: "c-{{payload.id}}" }, { orderingKey: "k" })).toBe("c-7")
    expect(keyOf({ partition_key: "{{payload.id}}" }, {}, "x".repeat(257))).toMatch(/^sha256-/)
  })

  it("Record without metadata has the payload's bytes", () => {
    const body = Buffer.from([0xff, 0, 0xfe])
    const { Data } = called("AWS_KINESIS", { include_metadata: false }, { ...event(""), body })
    expect(Buffer.from(String(Data), "base64")).toEqual(body)
  })

  it("Stream of another account is named by its ARN", () => {
    const StreamARN = "arn:aws:kinesis:eu-central-1:123456789012:stream/orders"
    expect(called("AWS_KINESIS", { stream: StreamARN }, event({}))).toMatchObject({ StreamARN })
  })
})

describe.each(["AWS_SQS", "AWS_EVENTBRIDGE", "AWS_KINESIS"] as const)("Batch of %s", (type) => {
  const { batch } = open(type, { batch: {} })
  const parts = [1, 2, 3].map((id) => {
    const message = event({ id })
    const part = batch!.part(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2) }))
    if (part === null || part instanceof Refusal) throw new Error("it is in no batch")
    return part
  })
  const [proof, error] = {
    AWS_SQS: ["MessageId", "Code"],
    AWS_EVENTBRIDGE: ["EventId", "ErrorCode"],
    AWS_KINESIS: ["SequenceNumber", "ErrorCode"]
  }[type] as [string, string]
  const answerOf = (status: number, body: unknown) => ({
    status,
    headers: {},
    body: Buffer.from(JSON.stringify(body)),
    bodyTruncated: false
  })
  /** An answer with a result for each part: the code of its error, or null. */
  const results = (codes: ReadonlyArray<string | null>) => {
    const made = codes.map((code, place) => ({
      Id: String(place),
      ...(code === null ? { [proof]: `p${place}` } : { [error]: code })
    }))
    const of = (failed: boolean) => made.filter((one) => error in one === failed).toReversed()
    if (type === "AWS_SQS") return answerOf(200, { Successful: of(false), Failed: of(true) })
    return answerOf(200, { [type === "AWS_KINESIS" ? "Records" : "Entries"]: made })
  }

  it("Call has the parts of its events, in their order, each as it is in a call of its own", () => {
    const call = JSON.parse(Buffer.from(batch!.call(parts, []).body).toString())
    const entries: ReadonlyArray<object> = call[type === "AWS_KINESIS" ? "Records" : "Entries"]
    const alone = [1, 2, 3].map((id) => called(type, { batch: {} }, event({ id })))
    const place = type === "AWS_SQS" ? ["QueueUrl"] : ["StreamName"]
    const ids = (at: number) => (type === "AWS_SQS" ? { Id: String(at) } : {})
    expect(entries).toEqual(
      alone.map((members, at) => ({
        ...ids(at),
        ...Object.fromEntries(Object.entries(members).filter(([name]) => !place.includes(name)))
      }))
    )
    const target = {
      AWS_SQS: "AmazonSQS.SendMessageBatch",
      AWS_EVENTBRIDGE: "AWSEvents.PutEvents",
      AWS_KINESIS: "Kinesis_20131202.PutRecords"
    }
    expect(batch!.call(parts, []).headers).toContain(target[type])
    for (const name of place) expect(call[name]).toEqual(alone[0]![name])
  })

  it("Each part has the verdict of its own result, and only its result is recorded", () => {
    const judged = batch!.judge(results([null, "InternalFailure", "ValidationException"]), 3)!
    expect(judged.map(({ verdict }) => (verdict === "successful" ? verdict : [verdict.code, verdict.final]))).toEqual([
      "successful",
      ["BAD_RESPONSE", false],
      ["BAD_RESPONSE", true]
    ])
    expect(judged.map(({ body }) => JSON.parse(body.toString()))).toEqual([
      expect.objectContaining({ [proof]: "p0" }),
      expect.objectContaining({ [error]: "InternalFailure" }),
      expect.objectContaining({ [error]: "ValidationException" })
    ])
  })

  it("Part without a result has failed, and may be sent again", () => {
    for (const answer of [
      results([null]),
      answerOf(200, {}),
      answerOf(200, "no"),
      { ...answerOf(200, {}), body: Buffer.from("<html>") }
    ]) {
      const [, last] = batch!.judge(answer, 2)!
      expect(last!.verdict).toMatchObject({ code: "BAD_RESPONSE", final: false })
    }
  })

  it("Call that is refused for what is in it is sent in parts, and one that may succeed later is not", () => {
    const refused = answerOf(400, { __type: "x#ValidationException" })
    expect(batch!.judge(refused, 3)).toBeNull()
    expect(batch!.judge(refused, 1)![0]!.verdict).toMatchObject({ final: true })
    for (const later of [answerOf(400, { __type: "x#ThrottlingException" }), answerOf(503, {})]) {
      const judged = batch!.judge(later, 3)!
      expect(judged).toHaveLength(3)
      for (const { verdict } of judged) expect(verdict).toMatchObject({ final: false })
    }
  })

  it("Call that is refused whatever is in it is not sent in parts: each part has its verdict", () => {
    const error = (code: string) => ({ __type: `x#${code}`, message: "no" })
    const refusals = [
      [answerOf(400, error("InvalidAddress")), { code: "BAD_RESPONSE", final: true }],
      [answerOf(400, error("UnsupportedOperationException")), { code: "BAD_RESPONSE", final: true }],
      [answerOf(404, error("UnknownOperationException")), { code: "BAD_RESPONSE", final: true }],
      [answerOf(404, {}), { code: "BAD_RESPONSE", final: true }],
      [answerOf(400, error("QueueDoesNotExist")), { code: "BAD_RESPONSE", final: false }],
      [answerOf(400, error("ResourceNotFoundException")), { code: "BAD_RESPONSE", final: false }],
      [answerOf(400, error("AccessDeniedException")), { code: "AUTH_REJECTED", final: false }]
    ] as const
    for (const [answer, verdict] of refusals) {
      const judged = batch!.judge(answer, 3)
      expect(judged?.map((part) => part.verdict)).toMatchObject([verdict, verdict, verdict])
      expect(judged!.map(({ body }) => body)).toEqual([answer.body, answer.body, answer.body])
    }
    // A message of the call may be too large, and the others are not.
    for (const code of ["BatchRequestTooLong", "InvalidParameterValue", "ValidationException", "SomethingNew"]) {
      expect(batch!.judge(answerOf(400, error(code)), 3)).toBeNull()
    }
    expect(batch!.judge(answerOf(413, {}), 3)).toBeNull()
  })

  it("Limits are those of the service, or lower ones", () => {
    const [count, bytes] = { AWS_SQS: [10, 1], AWS_EVENTBRIDGE: [10, 1], AWS_KINESIS: [500, 10] }[type] as [
      number,
      number
    ]
    expect(batch!.limits).toEqual({ maxCount: count, maxBytes: bytes * 1024 * 1024, maxWaitMs: 50 })
    const set = { max_count: 2, max_bytes: 2_000, max_wait_ms: 7 }
    expect(open(type, { batch: set }).batch!.limits).toEqual({ maxCount: 2, maxBytes: 2_000, maxWaitMs: 7 })
    expect(open(type, { batch: {}, max_concurrency: 4 }).batch!.limits.maxCount).toBe(4)
    expect(open(type).batch).toBeUndefined()
    const faults = (config: Config) => faultsOf(type, { ...place[type], ...config })
    expect(faults({ batch: { max_count: 3 }, max_concurrency: 2 })).toEqual([
      "config.max_concurrency must be null or at least 3, the events of a batch: they are under way together"
    ])
    expect(faults({ batch: {}, max_concurrency: 1 })).toHaveLength(1)
    expect(faults({ batch: { max_count: 500 } })).toHaveLength(type === "AWS_KINESIS" ? 0 : 1)
    expect(faults({ batch: { max_bytes: bytes * 1024 * 1024 + 1 } })[0]).toMatch(
      /must be (?:at most|a whole number from)/
    )
    expect(faults({ batch: {}, max_concurrency: 2 })).toEqual([])
  })
})
