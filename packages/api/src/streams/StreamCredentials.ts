import type { Headers } from "effect/http"
import { bearerOf } from "../Credentials.ts"

/** The credentials of a handshake. */
export interface StreamCredentials {
  /** A bin's token. */
  readonly bin: string | null
  /** A team's API key, or a session's token. */
  readonly caller: string | null
  /** The team that the caller names. */
  readonly team: string | null
}

const protocolName = /^[!#$%&'*+.^`|~\w-]{1,2048}$/
/** A handshake needs at most four subprotocols. */
const maxProtocols = 8

const isBinToken = (text: string): boolean => text.startsWith("pbn_")
const isTeam = (text: string): boolean => /^tm_\w{1,60}$/.test(text)

/** The subprotocols that a handshake offers, in their order; null: the header is invalid. */
export const offeredProtocols = (headers: Headers.Headers): ReadonlyArray<string> | null => {
  const offered = headers["sec-websocket-protocol"]
  if (offered === undefined) return []
  const names = offered.split(",").map((name) => name.trim())
  const isGood =
    names.length <= maxProtocols &&
    names.every((name) => protocolName.test(name)) &&
    new Set(names).size === names.length
  return isGood ? names : null
}

/**
 * The subprotocol for the answer, when an endpoint speaks one; without an answer a browser ends the connection. A token is never
 * repeated. Null: none is possible.
 */
export const echoed = (offered: Iterable<string>, spoken: string): string | null => {
  const names = [...offered]
  return names.find((name) => name === spoken) ?? names.find((name) => name.startsWith("team.")) ?? null
}

/** The value of a subprotocol of the form `name.<base64url>`. */
const valueOf = (name: string, offered: ReadonlyArray<string>): string | null => {
  const found = offered.find((one) => one.startsWith(`${name}.`))
  return found === undefined ? null : Buffer.from(found.slice(name.length + 1), "base64url").toString("utf8")
}

/**
 * A page cannot set headers, so it uses subprotocols: `token.` has the credential (a bin's token, an API key or a session's
 * token); `team.` has the team to act on, like `x-team-id`, or else that team's credential. Other clients send the usual headers.
 */
export const credentialsOf = (headers: Headers.Headers, offered: ReadonlyArray<string>): StreamCredentials => {
  const bearer = bearerOf(headers)
  const token = valueOf("token", offered)
  const team = valueOf("team", offered)
  const isNamed = team !== null && isTeam(team)
  const given = [headers["x-bin-token"], token, isNamed ? null : team, bearer].filter(
    (value) => value !== undefined && value !== null
  )
  return {
    bin: given.find(isBinToken) ?? null,
    caller: given.find((value) => value !== "" && !isBinToken(value)) ?? null,
    team: isNamed ? team : (headers["x-team-id"] ?? null)
  }
}
