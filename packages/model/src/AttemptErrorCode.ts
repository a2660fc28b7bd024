/** Why an attempt has failed, as the contract names it (gateway contract, section (e)). */
export type AttemptErrorCode =
  /** The target has answered, but not with success. */
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
  /** Found while the request was prepared: its path would lead outside the URL that the operator wrote. */
  | "PATH_NOT_ALLOWED"
  /** Found while the request was prepared: its URL and headers exceed what is sent to any target. */
  | "REQUEST_TOO_LARGE"
  /**
   * Found while the request was prepared: a template gave nothing where a value is required, too much, or a value of the wrong
   * kind.
   */
  | "TEMPLATE_ERROR"
  /** The target rejects the credentials of the destination. */
  | "AUTH_REJECTED"
  /** The client of a tunnel could not reach its own target. */
  | "CLI"
  /** No client has held the tunnel open for as long as an event waits for one. */
  | "CLI_UNAVAILABLE"
  /** No token for the destination could be obtained. */
  | "OAUTH2_HANDSHAKE_FAILED"
  /** A constraint of the table does not allow the row. */
  | "DB_CONSTRAINT"
  /** The database server accepts no statements now. */
  | "DB_UNAVAILABLE"
  /** The process has died several times during this attempt: it is not repeated. */
  | "PROCESS_ENDED"
  | "INTERNAL_ERROR"
  | "UNKNOWN"
