import { judgeCall, proved, rejected } from "./Api.ts"
import type { Answer, Failure, Verdict } from "./Connector.ts"

/** What the answers of object stores mean: an XML document with a code of theirs says more than the status does. */

/** Codes of credentials that are not taken, also where the status is 400. */
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
/** Codes of 4xx whose request may succeed as it is: it has come late, cut or spoilt. */
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

/** An error says its code at its beginning. */
const readBytes = 4_096

export const judgeObjectStore = (answer: Answer): Verdict => {
  const { status } = answer
  // Each says what it has stored by its tag.
  if (status >= 200 && status < 300) {
    return proved(answer, "successful", answer.headers["etag"] !== undefined && answer.body.length === 0)
  }
  const document = answer.body.toString("latin1", 0, readBytes)
  const code = /<Code>\s*([\w.-]{1,64})\s*<\/Code>/.exec(document)?.[1]
  if (ofPlace.has(code ?? "") || (status >= 300 && status < 400)) return elsewhere(answer, document, code)
  if (ofClocks.has(code ?? "")) {
    const message = `HTTP ${status}: the clocks of the gateway and of the object store are too far apart (${code})`
    return { code: "BAD_RESPONSE", message, final: false }
  }
  if (ofCredentials.has(code ?? "")) return rejected(`HTTP ${status}`, code)
  const verdict = judgeCall(answer, code)
  if (verdict === "successful" || verdict.code !== "BAD_RESPONSE") return verdict
  // What a store does not have it will not have at the next attempt either.
  return { ...verdict, final: status === 501 || (verdict.final && !passing.has(code ?? "")) }
}

/** A redirect is not followed: the signature is for the host and the region that it was made for. */
const elsewhere = ({ headers, status }: Answer, document: string, code: string | undefined): Failure => {
  const said = headers["x-amz-bucket-region"] ?? /<Region>\s*([\w-]{1,64})\s*<\/Region>/.exec(document)?.[1]
  const region = typeof said === "string" && /^[\w-]{1,64}$/.test(said) ? said : null
  return {
    code: "BAD_RESPONSE",
    message:
      `HTTP ${status} from the object store${code === undefined ? "" : ` (${code})`}: the bucket is elsewhere` +
      `${region === null ? "" : `, in region ${region}`}; set the destination's region or endpoint to where it is`,
    // A bucket that has just been made is sent on for a while.
    final: status !== 307
  }
}
