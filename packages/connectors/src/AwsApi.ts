import type { Message } from "@tidegate/model/Message"
import { answered, type ApiCall, apiSender } from "./Api.ts"
import { judgeAws } from "./AwsAnswers.ts"
import type { Answer, AttemptFacts, HttpSender, OpenAuth, Verdict } from "./Connector.ts"
import type { Fill } from "./Rendering.ts"
import { signer, signingKeyOf } from "./SignedRequest.ts"

/** Calls of Amazon's messaging services: made by templates, signed, and judged by error codes. */

export interface AwsService {
  /** The name in signatures, and in the hosts of the regions. */
  readonly service: string
  readonly region: string
  readonly url: string
  readonly auth: OpenAuth
}

/** Sends calls to a service. `call` throws `Unrenderable` if no valid call can be made of an event. */
export const awsSender = (
  { auth, region, service, url }: AwsService,
  call: (fill: Fill, facts: AttemptFacts, message: Message) => Omit<ApiCall, "url">,
  judge: (answer: Answer) => Verdict
): HttpSender => {
  const key = signingKeyOf(auth)
  const sender = apiSender({
    shownUrl: url,
    judge,
    call: (fill, facts, message) => ({ url, ...call(fill, facts, message) })
  })
  return key === null ? sender : { ...sender, complete: signer(key, { region, service }) }
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

/** The largest messages that the services can be set to take. A queue, topic or stream may have a lower limit. */
export const largest = { sqs: mebibyte, sns: mebibyte, events: mebibyte, kinesis: 10 * mebibyte } as const

/** Where the destination's credentials go: to Amazon, wherever a service is, or to the origin of something else. */
export const awsLeadsTo = (endpoint: string | null): string => (endpoint === null ? "Amazon" : new URL(endpoint).origin)
