import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { SessionFailure } from "./Failure.ts"
import { refusalText } from "./ServerWords.ts"
import type { SqlRefusal } from "./SqlServers.ts"

/** The meaning of a PostgreSQL server's refusal for a delivery. */
interface Meaning {
  readonly code: AttemptErrorCode
  /** Another attempt with the same row would be refused again. */
  readonly final: boolean
  readonly what: string
  /** The server cannot insert any row now, so the destination's other deliveries wait, too. */
  readonly isTooMuch?: boolean
}

const lasting = (what: string): Meaning => ({ code: "BAD_RESPONSE", final: true, what })
const passing = (what: string): Meaning => ({ code: "BAD_RESPONSE", final: false, what })
const tooMuch = (code: AttemptErrorCode, what: string): Meaning => ({ code, final: false, what, isTooMuch: true })

const constraint = (final: boolean, what: string): Meaning => ({ code: "DB_CONSTRAINT", final, what })

/** Not final, because the credentials may be corrected while retries last. */
const signIn: Meaning = { code: "AUTH_REJECTED", final: false, what: "the server does not let the destination in" }
const character: Meaning = {
  code: "INVALID_CHARACTER",
  final: true,
  what: "the event holds a character that the column cannot"
}

/** By SQLSTATE, or by its class, which is the first two characters. */
const meanings: Readonly<Record<string, Meaning>> = {
  "08": { code: "NETWORK_ERROR", final: false, what: "the server has lost a connection of its own", isTooMuch: true },
  "08P01": { code: "PROTOCOL_ERROR", final: false, what: "the server or its pooler does not take it", isTooMuch: true },
  "21": lasting("the statement does not fit the table"),
  "22": lasting("the column does not take the value"),
  "22021": character,
  "22P05": character,
  "23": constraint(true, "a constraint of the table does not allow the row"),
  // The referenced row may still arrive.
  "23503": constraint(false, "the row refers to one that is not there"),
  "23505": constraint(true, "there is such a row already"),
  "25": passing("the server takes no writes now"),
  "28": signIn,
  // Missing databases, schemas, tables, columns and constraints may be created or renamed while retries last.
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

const meaningOf = (state: string): Meaning => meanings[state] ?? meanings[state.slice(0, 2)] ?? unknown

/** Converts a refusal to the failure of an attempt. `secret`: masked in the message. */
export const failureOf = ({ fatal, said, state }: SqlRefusal, secret: string): SessionFailure => {
  const { code, final, isTooMuch = false, what } = meaningOf(state)
  return new SessionFailure({
    code,
    message: refusalText(what, state, said, [secret]),
    final,
    broken: fatal || isTooMuch
  })
}

/** Whether a single row may be the reason: its values, a constraint, or a trigger. */
export const isOfRow = ({ fatal, state }: SqlRefusal): boolean => {
  const meaning = meaningOf(state)
  return !fatal && (meaning.final || meaning.code === "DB_CONSTRAINT" || meaning === unknown)
}
