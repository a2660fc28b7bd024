import type { Message } from "@tidegate/model/Message"
import { isJsonObject } from "@tidegate/json/ExactNumber"
import { answered, apiBatch, type ApiCall, apiSender } from "./Api.ts"
import { isOfEveryPart, judgeAws, judgeRefusedPart } from "./AwsAnswers.ts"
import { judgeParts } from "./Batches.ts"
import type { Answer, AttemptFacts, BatchCalls, BatchPart, HttpSender, OpenAuth, Verdict } from "./Connector.ts"
import type { BatchLimits } from "@tidegate/runtime/Batcher"
import type { Fill } from "./Rendering.ts"
import { signer, signingKeyOf } from "@tidegate/outbound-auth/AwsSignature"

/** Calls of Amazon's messaging services: made by templates, signed, and judged by error codes. */

export interface AwsService {
  /** The name in signatures, and in the hosts of the regions. */
  readonly service: string
  readonly region: string
  readonly url: string
  readonly auth: OpenAuth
}

/** Makes the content of a call from one event. Throws `Unrenderable` if nothing valid can be made of it. */
type Make<Made> = (fill: Fill, facts: AttemptFacts, message: Message) => Made

/** How a service takes several events in one call. Their results are members of the answer, in the order of the parts or with their places as ids. */
export interface AwsBatch {
  readonly limits: BatchLimits | null
  readonly part: Make<BatchPart>
  readonly call: (parts: ReadonlyArray<BatchPart>) => Omit<ApiCall, "url">
  /** The result of the part at a place, in a successful answer. */
  readonly resultsOf: (answer: Answer) => (place: number) => Readonly<Record<string, unknown>> | undefined
  /** A text that every successful result has, and the member with the error code of every other one. */
  readonly proof: string
  readonly error: string
}

/** Sends calls to a service. `call` throws `Unrenderable` if no valid call can be made of an event. */
export const awsSender = (
  { auth, region, service, url }: AwsService,
  call: Make<Omit<ApiCall, "url">>,
  judge: (answer: Answer) => Verdict,
  batch: AwsBatch | null = null
): HttpSender => {
  const key = signingKeyOf(auth.settings)
  const sender: HttpSender = {
    ...apiSender({ shownUrl: url, judge, call: (...event) => ({ url, ...call(...event) }) }),
    ...(batch === null || batch.limits === null ? {} : { batch: batchCalls(url, batch, batch.limits) })
  }
  return key === null ? sender : { ...sender, complete: signer(key, { region, service }) }
}

const batchCalls = (url: string, { call, error, part, proof, resultsOf }: AwsBatch, limits: BatchLimits): BatchCalls =>
  apiBatch({
    limits,
    shownUrl: url,
    part,
    call: (parts) => ({ url, ...call(parts) }),
    judge: judgeParts({
      judgeCall: judgeAws(() => false),
      isOfEveryPart,
      resultsOf,
      judgePart: (answer, result) => {
        const code = result?.[error]
        if (typeof code === "string") return judgeRefusedPart(answer, code)
        return judgeAws(() => typeof result?.[proof] === "string")(answer)
      }
    })
  })

/** The objects in a list of an answer. */
export const listed = (
  answer: Answer,
  member: string
): ReadonlyArray<Readonly<Record<string, unknown>> | undefined> => {
  const list = answered(answer)[member]
  return Array.isArray(list) ? list.map((one) => (isJsonObject(one) ? one : undefined)) : []
}

/** A call of the AWS JSON protocol. `version`: 1.0 or 1.1. `body`: the members, or their JSON. */
export const jsonCall = (version: string, target: string, body: object | string): Omit<ApiCall, "url"> => ({
  headers: ["x-amz-target", target],
  contentType: `application/x-amz-json-${version}`,
  body: typeof body === "string" ? body : JSON.stringify(body)
})

/** Judges answers of the JSON protocols. `member`: a text that every successful answer has. */
export const judgeJson = (member: string) => judgeAws((answer) => typeof answered(answer)[member] === "string")

const mebibyte = 1024 * 1024

/** The largest messages (bytes) that the services can be configured to accept. A queue, topic or stream may have a lower limit. */
export const largest = { sqs: mebibyte, sns: mebibyte, events: mebibyte, kinesis: 10 * mebibyte } as const

/** The party that gets the destination's credentials: Amazon (in any region), or the origin of another service. */
export const awsLeadsTo = (endpoint: string | null): string => (endpoint === null ? "Amazon" : new URL(endpoint).origin)

/** The limits of one call with several messages. */
export const largestBatch = {
  sqs: { maxCount: 10, maxBytes: largest.sqs },
  sns: { maxCount: 10, maxBytes: largest.sns },
  events: { maxCount: 10, maxBytes: largest.events },
  kinesis: { maxCount: 500, maxBytes: largest.kinesis }
} as const
