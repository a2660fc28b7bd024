/** Why a connection did not route a request, as the end of a sentence. */
export const causes: Readonly<Record<string, string>> = {
  FILTERED: "the connection's filter did not match",
  TRANSFORMATION_FAILED: "the transformation failed",
  DEDUPLICATED: "an earlier request had the same key",
  HANDSHAKE: "it was a handshake of the sender, which the gateway answered",
  DISABLED: "the connection is disabled",
  CLI_DISCONNECTED: "no command line was connected",
  PROCESS_ENDED: "handling it ended the process three times",
  CONNECTION_DISABLED: "the connection was disabled",
  DESTINATION_DISABLED: "the destination was disabled",
  DESTINATION_DELETED: "the destination was deleted"
}

/** Why a source rejected a request, with what helps. */
export const rejections: Readonly<Record<string, string>> = {
  SOURCE_AUTH_FAILED:
    "It was rejected: its sender could not be verified. Compare the secret in the settings of the source with the one at the sender.",
  SOURCE_DISABLED:
    "It was rejected: its source was disabled. Enable the source, then ask the sender to repeat the request.",
  SOURCE_METHOD_NOT_ALLOWED:
    "It was rejected: its source does not accept this method. Add the method to allowed_http_methods of the source.",
  PAYLOAD_TOO_LARGE: "It was rejected: its body is larger than its source accepts.",
  SERVICE_WORKER_REFUSED: "It was rejected: a browser asked for it as the script of a service worker.",
  LOOP_DETECTED: "It was rejected: it was sent on from here too often. A destination leads back to the gateway."
}
