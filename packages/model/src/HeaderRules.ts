import type { Values } from "./Message.ts"

/** Header names that belong to one connection, or frame a message on it: whoever passes a message on sets its own. */
export const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** Those, and what the HTTP client says for itself: never copied from another message, and nobody's to set. */
export const setByClient: ReadonlySet<string> = new Set([...hopByHop, "content-length", "expect", "host"])

/** Whoever reads the gateway's own headers has to know that the gateway wrote them. `name` in lower case. */
export const isGateways = (name: string): boolean => name.startsWith("x-gateway-")

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

/** Adds a header to a flat list of names and values; one with several values is sent repeatedly. */
export const pushHeader = (flat: Array<string>, name: string, value: Values[string] | undefined): void => {
  if (value === undefined) return
  if (typeof value === "string") flat.push(name, value)
  else for (const one of value) flat.push(name, one)
}
