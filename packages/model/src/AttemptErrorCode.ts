/** Why an attempt has failed, in the contract's words (gateway contract, section (e)). */
export type AttemptErrorCode =
  /** It has answered, and not with success. */
  | "BAD_RESPONSE"
  | "TIMEOUT"
  | "CONNECTION_REFUSED"
  | "CONNECTION_RESET"
  | "SOCKET_CLOSED"
  | "DNS_LOOKUP_FAILED"
  | "HOST_UNREACHABLE"
  | "NETWORK_UNREACHABLE"
  | "NETWORK_ERROR"
  | "NETWORK_REQUEST_CANCELED"
  | "SELF_SIGNED_CERT"
  | "SSL_CERT_EXPIRED"
  | "SSL_ERROR_CA_UNKNOWN"
  | "ERR_TLS_CERT_ALTNAME_INVALID"
  | "UNABLE_TO_GET_ISSUER_CERT"
  | "ERR_SSL_WRONG_VERSION_NUMBER"
  | "PROTOCOL_ERROR"
  | "RESPONSE_TOO_LARGE"
  | "INVALID_CHARACTER"
  | "INVALID_URL"
  | "MISSING_URL"
  | "TARGET_NOT_ALLOWED"
  /** Found by who prepares the request: its path would lead out of the URL that the operator wrote. */
  | "PATH_NOT_ALLOWED"
  /** Likewise: its URL and headers are more than is sent to anybody. */
  | "REQUEST_TOO_LARGE"
  /** Likewise: a template makes nothing of it where something is needed, or too much, or not what it has to be. */
  | "TEMPLATE_ERROR"
  /** The target does not take the credentials of the destination. */
  | "AUTH_REJECTED"
  /** The client of a tunnel could not reach its own target. */
  | "CLI"
  /** No client has held the tunnel open for as long as is waited for one. */
  | "CLI_UNAVAILABLE"
  /** No token for the destination can be obtained. */
  | "OAUTH2_HANDSHAKE_FAILED"
  /** A constraint of the table does not allow the row. */
  | "DB_CONSTRAINT"
  /** The database server takes no statements now. */
  | "DB_UNAVAILABLE"
  /** The process ended again and again while it made this attempt: it is not made any more. */
  | "PROCESS_ENDED"
  | "INTERNAL_ERROR"
  | "UNKNOWN"
