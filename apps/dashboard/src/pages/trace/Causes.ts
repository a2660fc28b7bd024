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
