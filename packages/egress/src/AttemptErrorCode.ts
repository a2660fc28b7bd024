import { errors } from "undici"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"

export type { AttemptErrorCode }

/*
 * Error codes that egress itself can determine. The caller decides what an answer *means* (`BAD_RESPONSE` for a status outside 2xx,
 * `AUTH_REJECTED`, …), because a proxy, a token endpoint and a webhook target treat the same status differently.
 */

const byCause: ReadonlyMap<string, AttemptErrorCode> = new Map<string, AttemptErrorCode>([
  // The guard uses the contract's codes for its refusals.
  ["TARGET_NOT_ALLOWED", "TARGET_NOT_ALLOWED"],
  ["DNS_LOOKUP_FAILED", "DNS_LOOKUP_FAILED"],

  ["ECONNREFUSED", "CONNECTION_REFUSED"],
  ["ECONNRESET", "CONNECTION_RESET"],
  ["ECONNABORTED", "CONNECTION_RESET"],
  ["EPIPE", "SOCKET_CLOSED"],
  ["ETIMEDOUT", "TIMEOUT"],
  ["EHOSTUNREACH", "HOST_UNREACHABLE"],
  ["EHOSTDOWN", "HOST_UNREACHABLE"],
  ["ENETUNREACH", "NETWORK_UNREACHABLE"],
  ["ENETDOWN", "NETWORK_UNREACHABLE"],
  ["ENETRESET", "NETWORK_ERROR"],
  ["ENOTCONN", "NETWORK_ERROR"],
  ["EADDRNOTAVAIL", "NETWORK_ERROR"],
  ["EACCES", "NETWORK_ERROR"],
  ["EPERM", "NETWORK_ERROR"],
  ["EPROTO", "PROTOCOL_ERROR"],
  // Our own error: the process has run out of file descriptors or buffers.
  ["EMFILE", "INTERNAL_ERROR"],
  ["ENFILE", "INTERNAL_ERROR"],
  ["ENOBUFS", "INTERNAL_ERROR"],
  ["ENOMEM", "INTERNAL_ERROR"],

  ["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "SELF_SIGNED_CERT"],
  // Expired or not valid yet.
  ["CERT_HAS_EXPIRED", "SSL_CERT_EXPIRED"],
  ["CERT_NOT_YET_VALID", "SSL_CERT_EXPIRED"],
  // The target sent only its leaf certificate, and no authority that we know has signed it.
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "SSL_ERROR_CA_UNKNOWN"],
  ["CERT_UNTRUSTED", "SSL_ERROR_CA_UNKNOWN"],
  ["CERT_REJECTED", "SSL_ERROR_CA_UNKNOWN"],
  ["CERT_REVOKED", "SSL_ERROR_CA_UNKNOWN"],
  ["CERT_SIGNATURE_FAILURE", "SSL_ERROR_CA_UNKNOWN"],
  ["CERT_CHAIN_TOO_LONG", "SSL_ERROR_CA_UNKNOWN"],
  ["PATH_LENGTH_EXCEEDED", "SSL_ERROR_CA_UNKNOWN"],
  ["INVALID_CA", "SSL_ERROR_CA_UNKNOWN"],
  ["INVALID_PURPOSE", "SSL_ERROR_CA_UNKNOWN"],
  ["UNABLE_TO_GET_ISSUER_CERT", "UNABLE_TO_GET_ISSUER_CERT"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "UNABLE_TO_GET_ISSUER_CERT"],
  ["HOSTNAME_MISMATCH", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "ERR_TLS_CERT_ALTNAME_INVALID"],
  // The target does not speak TLS on this port, or only versions that are not safe any more.
  ["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "ERR_SSL_WRONG_VERSION_NUMBER"],

  ["UND_ERR_CONNECT_TIMEOUT", "TIMEOUT"],
  ["UND_ERR_HEADERS_OVERFLOW", "RESPONSE_TOO_LARGE"],
  ["RESPONSE_TOO_LARGE", "RESPONSE_TOO_LARGE"],
  // The HTTP client refuses the request: a header name or value, or the method, contains forbidden characters.
  ["UND_ERR_INVALID_ARG", "INVALID_CHARACTER"],
  ["UND_ERR_NOT_SUPPORTED", "INVALID_CHARACTER"],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "SOCKET_CLOSED"],
  ["UND_ERR_SOCKET", "SOCKET_CLOSED"],
  ["UND_ERR_ABORTED", "NETWORK_REQUEST_CANCELED"],
  ["UND_ERR_DESTROYED", "NETWORK_REQUEST_CANCELED"],
  ["UND_ERR_CLOSED", "NETWORK_REQUEST_CANCELED"]
])

/** Messages of the HTTP client for a protocol violation by the target; these errors have no code. */
const protocolBreaches: ReadonlySet<string> = new Set(["bad response", "bad upgrade"])

/**
 * The code for the error of an exchange. If every address of a host failed, the error of the first one counts: it is
 * the preferred address. `answering`: the status line and headers had arrived; without them a body that does
 * not match its declared length cannot have been cut short, so the message itself was malformed.
 */
export const errorCodeOf = (error: Error & { readonly code?: unknown }, answering = false): AttemptErrorCode => {
  const cause = typeof error.code === "string" ? error.code : ""
  if (cause === "UND_ERR_SOCKET" && protocolBreaches.has(error.message)) return "PROTOCOL_ERROR"
  if (cause === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && !answering) return "PROTOCOL_ERROR"
  const known = byCause.get(cause)
  if (known !== undefined) return known
  // Messages that the parser refuses, and TLS alerts other than those above: the target answers, but not in a form that we can use.
  return error instanceof errors.HTTPParserError || cause.startsWith("ERR_SSL_") ? "PROTOCOL_ERROR" : "UNKNOWN"
}

/** Characters of a message: some messages repeat the target's data, such as all the names in its certificate. */
const longestMessage = 1_000

/**
 * The message for the same error: for an aggregate the failure at each address; for a TLS alert its reason only, because
 * the library's own text contains source lines and memory addresses.
 */
export const errorMessageOf = (error: Error & { readonly reason?: unknown }): string =>
  wholeMessageOf(error).slice(0, longestMessage).replaceAll("\0", "\ufffd").toWellFormed()

const wholeMessageOf = (error: Error & { readonly reason?: unknown }): string => {
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map((each) => (each instanceof Error ? each.message : String(each))).join("; ")
  }
  const isAlert = typeof error.reason === "string" && error.message.includes(":SSL routines:")
  return isAlert ? `TLS: ${error.reason}` : error.message
}
