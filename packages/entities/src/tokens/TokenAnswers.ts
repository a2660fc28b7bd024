import { Data } from "effect"
import type { Answer } from "@tidegate/connectors/Connector"
import { parseRetryAfter } from "@tidegate/rules/Retry"
import type { Echoes } from "@tidegate/redaction/Echoes"

/** Answers of those who give out tokens: what is read of them, and within what limits. */

/** The time-out of one call. It is shorter than a claim, and than an attempt. */
export const patienceMs = 10_000
/** Bytes of an answer, characters of a token. */
export const largestAnswer = 65_536
const longestToken = 16_384
const longestWaitMs = 3_600_000

/** What a provider has returned. */
export interface Obtained {
  readonly access: string
  /** When it expires (Unix ms), counted from the time of the request. */
  readonly expiresAt: number
  /** The new refresh token; null: the answer has none. */
  readonly refresh: string | null
  /** The scope that the provider names; null: it names none, so that it is what was asked for (RFC 6749, 5.1). */
  readonly scope: string | null
}

/** No token was given. From the provider's answer the message has only its error code and a line of its description. */
export class NotObtained extends Data.TaggedError("NotObtained")<{
  readonly message: string
  /** The provider understood the request and refused: it would refuse again. */
  readonly refused: boolean
  /** The wait that the provider asks for, in milliseconds. */
  readonly waitMs: number | null
}> {}

export const failed = (message: string, waitMs: number | null = null): NotObtained =>
  new NotObtained({ message, refused: false, waitMs })

/** The largest part of the provider's own text, in characters: enough for a person, with our secrets masked. */
const longestWords = 200
export const lineOf = (said: unknown, hidden: Echoes | null): string => {
  if (typeof said !== "string") return ""
  const line = said
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ")
    .trim()
  const shown = hidden === null ? line : hidden.text(line)
  return shown.length > longestWords ? `${shown.slice(0, longestWords).toWellFormed()}…` : shown
}

/** The wait that an answer asks for (ms); null: it asks for none. */
export const waitOf = ({ headers }: Pick<Answer, "headers">): number | null => {
  const [after, date] = [headers["retry-after"], Date.parse(String(headers["date"]))]
  // By the answer's own date, so that two clocks need not agree.
  const wait = typeof after === "string" ? parseRetryAfter(after, Number.isNaN(date) ? Date.now() : date) : null
  return typeof wait === "number" ? Math.min(wait, longestWaitMs) : null
}

/** Whether a text can be what a provider gave: printable, and of a length that is stored. */
export const isToken = (text: string): boolean => text.length <= longestToken && /^[\x21-\x7e]+$/.test(text)
