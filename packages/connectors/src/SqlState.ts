import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { SessionFailure } from "./Connector.ts"
import type { SqlRefusal } from "./SqlServers.ts"

/** What a PostgreSQL server's refusal means to a delivery. */
interface Meaning {
  readonly code: AttemptErrorCode
  /** The same would be said of the same row at the next attempt. */
  readonly final: boolean
  readonly what: string
  /** It is the server that cannot, whatever the row: what is on its way is held back. */
  readonly isTooMuch?: boolean
}

const lasting = (what: string): Meaning => ({ code: "BAD_RESPONSE", final: true, what })
const passing = (what: string): Meaning => ({ code: "BAD_RESPONSE", final: false, what })
const tooMuch = (code: AttemptErrorCode, what: string): Meaning => ({ code, final: false, what, isTooMuch: true })

const constraint = (final: boolean, what: string): Meaning => ({ code: "DB_CONSTRAINT", final, what })

/** A refused sign-in may be mended while the retries last. */
const signIn: Meaning = { code: "AUTH_REJECTED", final: false, what: "the server does not let the destination in" }
const character: Meaning = {
  code: "INVALID_CHARACTER",
  final: true,
  what: "the event holds a character that the column cannot"
}

/** By SQLSTATE, or by its first two characters, which are its class. */
const meanings: Readonly<Record<string, Meaning>> = {
  "08": { code: "NETWORK_ERROR", final: false, what: "the server has lost a connection of its own", isTooMuch: true },
  "08P01": { code: "PROTOCOL_ERROR", final: false, what: "the server or its pooler does not take it", isTooMuch: true },
  "21": lasting("the statement does not fit the table"),
  "22": lasting("the column does not take the value"),
  "22021": character,
  "22P05": character,
  "23": constraint(true, "a constraint of the table does not allow the row"),
  // The row that it refers to may be on its way.
  "23503": constraint(false, "the row refers to one that is not there"),
  "23505": constraint(true, "there is such a row already"),
  "25": passing("the server takes no writes now"),
  "28": signIn,
  // What is not there may be put there, or renamed, while the retries last: so too the schema, the table, its columns and constraints.
  "3D": passing("there is no such database"),
  "3F": passing("there is no such schema"),
  "40": passing("the row collided with what others write"),
  "42": lasting("the statement does not fit the table"),
  "42501": { ...signIn, what: "the user may not write to the table" },
  "42703": passing("the table has no such column"),
  "42804": lasting("the column is of another type"),
  "42P01": passing("there is no such table"),
  "42P10": passing("config.event_id_column has no UNIQUE constraint of its own"),
  "53": tooMuch("DB_UNAVAILABLE", "the server has no room"),
  "53300": tooMuch("DB_UNAVAILABLE", "the server has too many connections"),
  "54": lasting("the row is too large or too deep for the server"),
  "55": passing("the table is locked"),
  "55P03": { code: "TIMEOUT", final: false, what: "the table stayed locked" },
  "57": tooMuch("DB_UNAVAILABLE", "the server is going down or coming up"),
  "57014": { code: "TIMEOUT", final: false, what: "the server has stopped the statement" }
}

const unknown = passing("the server has refused the row")

/** As much of a server's words as is shown. */
const longestWords = 300

/** A server's words on one line, without what must not be shown; a stranger may repeat what it was told. */
const shown = (said: string, secret: string): string => {
  const hidden = secret === "" ? said : said.replaceAll(secret, "****")
  return hidden
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ")
    .trim()
    .slice(0, longestWords)
    .toWellFormed()
}

/** How an attempt has failed by a refusal. `secret`: what is never shown. */
export const failureOf = ({ fatal, said, state }: SqlRefusal, secret: string): SessionFailure => {
  const { code, final, isTooMuch = false, what } = meanings[state] ?? meanings[state.slice(0, 2)] ?? unknown
  const words = shown(said, secret)
  return new SessionFailure({
    code,
    message: `${what} (${state})${words === "" ? "" : `: ${words}`}`,
    final,
    broken: fatal || isTooMuch
  })
}
