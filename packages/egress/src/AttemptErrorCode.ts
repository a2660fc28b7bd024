import { errors } from "undici"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"

export type { AttemptErrorCode }

/*
 * The codes of what the way out itself can find. What an answer *means* (`BAD_RESPONSE` for a status outside 2xx, `AUTH_REJECTED`,
 * …) is judged by the caller, because a proxy, a token endpoint and a webhook target judge the same status differently.
 */

const byCause: ReadonlyMap<string, AttemptErrorCode> = new Map<string, AttemptErrorCode>([
  // The guard names its refusals by the contract's codes.
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
  // Ours: the process has run out of file descriptors or buffers.
  ["EMFILE", "INTERNAL_ERROR"],
  ["ENFILE", "INTERNAL_ERROR"],
  ["ENOBUFS", "INTERNAL_ERROR"],
  ["ENOMEM", "INTERNAL_ERROR"],

  ["DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "SELF_SIGNED_CERT"],
  // Outside its validity period, on either side.
  ["CERT_HAS_EXPIRED", "SSL_CERT_EXPIRED"],
  ["CERT_NOT_YET_VALID", "SSL_CERT_EXPIRED"],
  // The target sent its leaf certificate alone and no authority we know has signed it.
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
  // The target speaks no TLS at all on this port, or no version of it that is still safe.
  ["ERR_SSL_WRONG_VERSION_NUMBER", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_PACKET_LENGTH_TOO_LONG", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_UNSUPPORTED_PROTOCOL", "ERR_SSL_WRONG_VERSION_NUMBER"],
  ["ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION", "ERR_SSL_WRONG_VERSION_NUMBER"],

  ["UND_ERR_CONNECT_TIMEOUT", "TIMEOUT"],
  ["UND_ERR_HEADERS_OVERFLOW", "RESPONSE_TOO_LARGE"],
  ["RESPONSE_TOO_LARGE", "RESPONSE_TOO_LARGE"],
  // The HTTP client refuses to write the request: a header name or value, or the method, holds what HTTP forbids.
  ["UND_ERR_INVALID_ARG", "INVALID_CHARACTER"],
  ["UND_ERR_NOT_SUPPORTED", "INVALID_CHARACTER"],
  ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "SOCKET_CLOSED"],
  ["UND_ERR_SOCKET", "SOCKET_CLOSED"],
  ["UND_ERR_ABORTED", "NETWORK_REQUEST_CANCELED"],
  ["UND_ERR_DESTROYED", "NETWORK_REQUEST_CANCELED"],
  ["UND_ERR_CLOSED", "NETWORK_REQUEST_CANCELED"]
])

/** What the HTTP client says when a target breaks the protocol rather than the connection; it has no code of its own. */
const protocolBreaches: ReadonlySet<string> = new Set(["bad response", "bad upgrade"])

/**
 * The code for the error an exchange ended with. When every address of a host failed, the first one's cause counts: it is
 * the preferred address. `answering` says whether the status line and headers had arrived; without them a body that does
 * not match its declared length cannot have been cut short, so the message itself was malformed.
 */
export const errorCodeOf = (error: Error & { readonly code?: unknown }, answering = false): AttemptErrorCode => {
  const cause = typeof error.code === "string" ? error.code : ""
  if (cause === "UND_ERR_SOCKET" && protocolBreaches.has(error.message)) return "PROTOCOL_ERROR"
  if (cause === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && !answering) return "PROTOCOL_ERROR"
  const known = byCause.get(cause)
  if (known !== undefined) return known
  // What the parser refuses, and TLS alerts other than those above: the target speaks, but not so that we can go on.
  return error instanceof errors.HTTPParserError || cause.startsWith("ERR_SSL_") ? "PROTOCOL_ERROR" : "UNKNOWN"
}

/** Characters of a message: some repeat what the target said, such as all the names in its certificate. */
const longestMessage = 1_000

/**
 * The message for the same error: for an aggregate the failure at each address, for a TLS alert its reason alone, because
 * the library's own text is full of its source lines and of addresses in our memory.
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
