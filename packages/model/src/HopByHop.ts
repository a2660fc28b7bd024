/** Header names that belong to one connection, or frame a message on it: whoever passes a message on sets its own. */
export const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
] as const
