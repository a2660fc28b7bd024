import { describe, expect, it } from "@effect/vitest"
import { Refusal } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import { factsOf } from "./Facts.ts"
import { event, faultsOf, opened, sent } from "./Opened.ts"

/** Several events in one call of Amazon SNS, whose calls are forms and whose answers are XML. */

const topic_arn = "arn:aws:sns:eu-central-1:123456789012:orders"
const auth = {
  headers: {},
  signing: null,
  settings: { access_key_id: "AKIDEXAMPLE", secret_access_key: "a-secret" }
}
const open = (config: Config = { batch: {} }) =>
  opened("AWS_SNS", { topic_arn, subject: "Order {{payload.id}}", ...config }, auth)
const batch = open().batch!

const messages = [1, 2, 3].map((id) => event({ id, text: "ü & <+ %=" }))
const parts = messages.map((message) => {
  const part = batch.part(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2) }))
  if (part === null || part instanceof Refusal) throw new Error("it is in no batch")
  return part
})
const fieldsOf = (text: Uint8Array | string) => Object.fromEntries(new URLSearchParams(String(text)))

const answerOf = (status: number, body: string) => ({
  status,
  headers: {},
  body: Buffer.from(body),
  bodyTruncated: false
})
const successful = (id: number) => `<member><MessageId>m-${id}</MessageId><Id>${id}</Id></member>`
const failed = (id: number, code: string) =>
  `<member>\n<Code>${code}</Code><Id>${id}</Id><Message>no</Message><SenderFault>false</SenderFault>\n</member>`
const result = (successes: string, failures = "") =>
  answerOf(
    200,
    `<PublishBatchResponse><PublishBatchResult><Failed>${failures}</Failed><Successful>${successes}</Successful></PublishBatchResult></PublishBatchResponse>`
  )

describe("Batch of AWS_SNS", () => {
  it("Call has the parts of its events, in their order, each as it is in a call of its own", () => {
    const { TopicArn, Version, ...alone } = fieldsOf(sent(open(), messages[1]!).text)
    const made = batch.call(parts, [])
    const { Action, ...call } = fieldsOf(Buffer.from(made.body).toString())
    expect([Action, call["TopicArn"], call["Version"]]).toEqual(["PublishBatch", TopicArn, Version])
    expect([1, 2, 3].map((place) => call[`PublishBatchRequestEntries.member.${place}.Id`])).toEqual(["0", "1", "2"])
    const start = "PublishBatchRequestEntries.member.2."
    const second = Object.entries(call).flatMap(([name, value]) =>
      name.startsWith(start) ? [[name.slice(start.length), value]] : []
    )
    expect({ ...Object.fromEntries(second), Action: "Publish" }).toEqual({ ...alone, Id: "1" })
  })

  it("Each part has the verdict of its own result, and only its result is recorded", () => {
    const answer = result(successful(2) + successful(0), failed(1, "InternalError"))
    const judged = batch.judge(answer, 3)!
    expect(judged.map(({ verdict }) => (verdict === "successful" ? verdict : [verdict.code, verdict.final]))).toEqual([
      "successful",
      ["BAD_RESPONSE", false],
      "successful"
    ])
    expect(judged.map(({ body }) => JSON.parse(body.toString()))).toEqual([
      { Id: "0", MessageId: "m-0" },
      { Id: "1", Code: "InternalError" },
      { Id: "2", MessageId: "m-2" }
    ])
    const [refused] = batch.judge(result("", failed(0, "InvalidParameter")), 1)!
    expect(refused!.verdict).toMatchObject({ code: "BAD_RESPONSE", final: true })
  })

  it.each([
    ["lacks it", result(successful(0)).body],
    ["has no end", Buffer.from("<member>".repeat(100_000))],
    ["is a page", Buffer.from("<html>")],
    ["names the event and no message", result("<member><Id>1</Id></member>").body]
  ])("Part has failed, and may be sent again, where the answer %s", (_, body) => {
    const [, last] = batch.judge({ ...answerOf(200, ""), body }, 2)!
    expect(last!.verdict).toMatchObject({ code: "BAD_RESPONSE", final: false })
  })

  it("Call that is refused for what is in it is sent in parts, and one that may succeed later is not", () => {
    const error = (code: string) => `<ErrorResponse><Error><Code>${code}</Code></Error></ErrorResponse>`
    expect(batch.judge(answerOf(400, error("BatchRequestTooLong")), 3)).toBeNull()
    const later = batch.judge(answerOf(400, error("Throttling")), 3)!
    expect(later.map(({ verdict }) => verdict !== "successful" && verdict.final)).toEqual([false, false, false])
    const never = batch.judge(answerOf(400, error("InvalidAction")), 3)
    expect(never?.map(({ verdict }) => verdict !== "successful" && verdict.final)).toEqual([true, true, true])
  })

  it("Limits are those of the service, or lower ones", () => {
    expect(batch.limits).toEqual({ maxCount: 10, maxBytes: 1024 * 1024, maxWaitMs: 50 })
    expect(open({}).batch).toBeUndefined()
    expect(faultsOf("AWS_SNS", { topic_arn, batch: { max_count: 11 } })).toEqual([
      "config.batch.max_count must be at most 10: the service takes no more in one call"
    ])
  })
})
