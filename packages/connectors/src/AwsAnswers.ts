import { answered, failed, judgeCall, proved, refused, rejected } from "./Api.ts"
import type { Answer, Verdict } from "./Connector.ts"
import type { Failure } from "./Failure.ts"

/** The meaning of the answers of Amazon's messaging services. Their error codes say more than the status: throttling is a 400. */

type Meaning = "credentials" | "throttled" | "passing" | "final" | "whole"

/**
 * Failures by error code, in lower case and without the `Exception` that some protocols append. The codes are those of `SendMessage`, `Publish`,
 * `PutEvents` and `PutRecord`, and those that all services share. A 4xx code that is not listed here is final.
 */
const meanings: ReadonlyMap<string, Meaning> = new Map(
  (
    [
      // Not final, because somebody may repair the key, its rights or the policy of the target while retries last.
      [
        "credentials",
        "accessdenied authfailure authorizationerror expiredtoken incompletesignature invalidaccesskeyid invalidclienttokenid " +
          "invalidsecurity invalidsignature kmsaccessdenied kmsoptinrequired missingauthenticationtoken notauthorized " +
          "notauthorizedfordetailtype notauthorizedforsource optinrequired signaturedoesnotmatch subscriptionrequired " +
          "unrecognizedclient"
      ],
      [
        "throttled",
        "bandwidthlimitexceeded kmsthrottled kmsthrottling limitexceeded priorrequestnotcomplete " +
          "provisionedthroughputexceeded requestlimitexceeded requestthrottled slowdown throttled throttling toomanyrequests"
      ],
      // Not final, because somebody may create the queue, topic or stream, or enable its key, while retries last.
      [
        "passing",
        "internal internalerror internalfailure kmsdisabled kmsinvalidkeyusage kmsinvalidstate kmsnotfound nonexistentqueue " +
          "notfound queuedeletedrecently queuedoesnotexist requesttimeout resourcenotfound serviceunavailable"
      ],
      ["final", "invalidargument malformeddetail redactionfailure"],
      // Final, whatever the call has in it.
      ["whole", "invalidaccountid invalidaction invalidaddress operationdisabled unknownoperation unsupportedoperation"]
    ] as const
  ).flatMap(([meaning, codes]) => codes.split(" ").map((code) => [code, meaning] as const))
)

const meaningOf = (code: string | null): Meaning | undefined =>
  meanings.get(
    (code ?? "")
      .toLowerCase()
      .replace(/^.*\./, "")
      .replace(/exception$/, "")
  )

const ofClocks = /^(?:RequestExpired|RequestInTheFuture|RequestTimeTooSkewed)/
const saidOfClocks = /signature (?:has )?expired|signature not yet current/i

/** Bytes of an XML document that are searched. Error code and message are near its beginning. */
const searched = 4_096

export interface AwsError {
  readonly code: string | null
  readonly said: string
}

/** The error code of an answer, and its message. Depending on the service, they are in a member, in a header, or in an XML document. */
export const awsErrorIn = (answer: Answer): AwsError => {
  const { __type: type, message, Message: said = message } = answered(answer)
  const document = answer.body.toString("utf8", 0, searched)
  const code =
    [type, answer.headers["x-amzn-errortype"]].find((one) => typeof one === "string") ??
    /<Code>\s*([\w.-]{1,128})\s*<\/Code>/.exec(document)?.[1]
  const text = typeof said === "string" ? said : (/<Message>([^<]{0,2000})<\/Message>/.exec(document)?.[1] ?? "")
  // `com.amazonaws.sqs#QueueDoesNotExist:http://…`
  const [, plain = null] = /^(?:[^#]*#)?([\w.-]{1,64})/.exec(typeof code === "string" ? code : "") ?? []
  return { code: plain, said: text }
}

/** The quotas apply to one second. If the answer gives no time, the next call comes after a second. */
const untilQuota = 1

const meant = (
  answer: Answer,
  code: string | null,
  otherwise: Verdict,
  failure: (final: boolean) => Failure
): Verdict => {
  switch (meaningOf(code)) {
    case "credentials":
      return rejected(`HTTP ${answer.status}`, code)
    case "throttled":
      return answer.headers["retry-after"] === undefined
        ? { ...failure(false), retryAfter: untilQuota }
        : failure(false)
    case "passing":
      return failure(false)
    case "final":
    case "whole":
      return failure(true)
    default:
      return otherwise
  }
}

/** Decides about an answer. `isProof`: whether the answer contains the id that the service gives to a message. */
export const judgeAws =
  (isProof: (answer: Answer) => boolean) =>
  (answer: Answer): Verdict => {
    const { status } = answer
    if (status >= 200 && status < 300) return proved(answer, "successful", isProof(answer))
    const { code, said } = awsErrorIn(answer)
    if (ofClocks.test(code ?? "") || saidOfClocks.test(said)) {
      const message = `HTTP ${status}: the clocks of the gateway and of the service are too far apart (${code})`
      return { code: "BAD_RESPONSE", message, final: false }
    }
    return meant(answer, code, judgeCall(answer, code), (final) => failed(status, code, final))
  }

/** Statuses that are about the address of a call. */
const ofAddress: ReadonlySet<number> = new Set([404, 405, 410])

/** Whether an answer that finally refuses a call would be the same for every message. Any other refusal may be caused by one message of the call. */
export const isOfEveryPart = (answer: Answer): boolean =>
  ofAddress.has(answer.status) || meaningOf(awsErrorIn(answer).code) === "whole"

/** The meaning of an error code that a service gives to a part of a call, within a 200. */
export const judgeRefusedPart = (answer: Answer, code: string | null): Verdict =>
  meant(answer, code, refused(code, true), (final) => refused(code, final))
