import { judgeCall, proved, rejected } from "./Api.ts"
import type { Answer, Verdict } from "./Connector.ts"
import type { Failure } from "./Failure.ts"

/** The meaning of object stores' answers: an XML document with an error code says more than the status. */

/** Error codes of refused credentials, even if the status is 400. */
const ofCredentials: ReadonlySet<string> = new Set([
  "AccessDenied",
  "AccountProblem",
  "AllAccessDisabled",
  "ExpiredToken",
  "InvalidAccessKeyId",
  "InvalidSecurity",
  "InvalidToken",
  "NotSignedUp",
  "SignatureDoesNotMatch",
  "TokenRefreshRequired",
  "Unauthorized"
])
/** Codes of 4xx after which the same request may succeed: it came late, incomplete or damaged. */
const passing: ReadonlySet<string> = new Set([
  "BadDigest",
  "IncompleteBody",
  "RequestTimeout",
  "XAmzContentSHA256Mismatch"
])
const ofClocks: ReadonlySet<string> = new Set(["RequestExpired", "RequestTimeTooSkewed"])
const ofPlace: ReadonlySet<string> = new Set([
  "AuthorizationHeaderMalformed",
  "IllegalLocationConstraintException",
  "PermanentRedirect",
  "Redirect",
  "TemporaryRedirect"
])

/** Bytes. The error code is near the beginning. */
const readBytes = 4_096

const codeIn = (document: string): string | undefined => /<Code>\s*([\w.-]{1,64})\s*<\/Code>/.exec(document)?.[1]

/** Whether the store refused the object because of its size. A store does not read objects, so any other reason would apply to every object. */
export const isOfSize = ({ body, status }: Answer): boolean =>
  status === 413 || codeIn(body.toString("latin1", 0, readBytes)) === "EntityTooLarge"

export const judgeObjectStore = (answer: Answer): Verdict => {
  const { status } = answer
  // Every store confirms a stored object with an ETag.
  if (status >= 200 && status < 300) {
    return proved(answer, "successful", answer.headers["etag"] !== undefined && answer.body.length === 0)
  }
  const document = answer.body.toString("latin1", 0, readBytes)
  const code = codeIn(document)
  if (ofPlace.has(code ?? "") || (status >= 300 && status < 400)) return elsewhere(answer, document, code)
  if (ofClocks.has(code ?? "")) {
    const message = `HTTP ${status}: the clocks of the gateway and of the object store are too far apart (${code})`
    return { code: "BAD_RESPONSE", message, final: false }
  }
  if (ofCredentials.has(code ?? "")) return rejected(`HTTP ${status}`, code)
  const verdict = judgeCall(answer, code)
  if (verdict === "successful" || verdict.code !== "BAD_RESPONSE") return verdict
  // A function that the store does not implement will be missing at the next attempt, too.
  return { ...verdict, final: status === 501 || (verdict.final && !passing.has(code ?? "")) }
}

/** A redirect is not followed, because the signature is valid only for its own host and region. */
const elsewhere = ({ headers, status }: Answer, document: string, code: string | undefined): Failure => {
  const said = headers["x-amz-bucket-region"] ?? /<Region>\s*([\w-]{1,64})\s*<\/Region>/.exec(document)?.[1]
  const region = typeof said === "string" && /^[\w-]{1,64}$/.test(said) ? said : null
  return {
    code: "BAD_RESPONSE",
    message:
      `HTTP ${status} from the object store${code === undefined ? "" : ` (${code})`}: the bucket is elsewhere` +
      `${region === null ? "" : `, in region ${region}`}; set the destination's region or endpoint to where it is`,
    // A new bucket is redirected for a while.
    final: status !== 307
  }
}
