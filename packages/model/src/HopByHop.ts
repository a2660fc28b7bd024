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

const noNames: ReadonlySet<string> = new Set()

/** The header names that a Connection header declares to be the connection's own too. */
export const connectionNames = (connection: string | ReadonlyArray<string> | undefined): ReadonlySet<string> =>
  connection === undefined || connection === "keep-alive" || connection === "close"
    ? noNames
    : new Set(
        String(connection)
          .split(",")
          .map((name) => name.trim().toLowerCase())
      )
