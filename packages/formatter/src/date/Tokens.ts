import { Fault } from "../engine/Fault.ts"
import * as Characters from "@tidegate/model/Characters"
import { option } from "../engine/Fields.ts"
import type { Field } from "../engine/Field.ts"
import { memo } from "../engine/Memo.ts"

/** Date formats by tokens: `YYYY-MM-DD HH:mm`. */

export const maxFormat = 128

export type Piece = { readonly token: string } | { readonly literal: string }

const piece =
  /\[([^\]]*)\]|(YYYY|YY|MMMM|MMM|MM|M|DDDD|DDD|DD|Do|D|dddd|ddd|d|HH|H|hh|h|mm|m|ss|s|S{1,6}|A|a|ZZZ|ZZ|Z|W|Q|X|x)|([^A-Za-z[]+)/y

type Read =
  | { readonly pieces: ReadonlyArray<Piece>; readonly fault: null }
  | { readonly pieces: null; readonly fault: string }

const read = memo(200, (format): Read => {
  const pieces: Array<Piece> = []
  for (let at = 0; at < format.length;) {
    piece.lastIndex = at
    const found = piece.exec(format)
    if (found === null)
      return {
        pieces: null,
        fault: `${JSON.stringify(format[at])} means nothing in a date format; literal text stands in [brackets]`
      }
    const [whole, bracketed, token, other] = found
    pieces.push(token === undefined ? { literal: bracketed ?? other ?? "" } : { token })
    at += whole.length
  }
  return { pieces, fault: null }
})

export const piecesOf = (format: string, field: string): ReadonlyArray<Piece> => {
  if (!Characters.isUpTo(format, maxFormat)) {
    throw new Fault("FORMATTER_DATE_FORMAT_INVALID", "the format is too long", {
      field,
      limit: maxFormat,
      actual: Characters.count(format)
    })
  }
  const { fault, pieces } = read(format)
  if (pieces === null) throw new Fault("FORMATTER_DATE_FORMAT_INVALID", fault, { field })
  return pieces
}

export const isoFormat = "YYYY-MM-DDTHH:mm:ss.SSSZZ"

/** The suggested formats. `T` between date and time is a literal. */
const offered = [
  "ddd MMM DD HH:mm:ss Z YYYY",
  "MMMM DD YYYY HH:mm:ss",
  "MMMM DD YYYY",
  "MMM DD YYYY",
  "YYYY-MM-DDTHH:mm:ssZ",
  "YYYY-MM-DD HH:mm:ss Z",
  "YYYY-MM-DD",
  "MM-DD-YYYY",
  "MM/DD/YYYY",
  "MM/DD/YY",
  "DD-MM-YYYY",
  "DD/MM/YYYY",
  "DD/MM/YY",
  "X",
  isoFormat
]

const literalT = (format: string): string => format.replaceAll(/DT(?=H)/g, "D[T]")

/** A date format option. */
const format = (label: string, preset: string | null, choices: ReadonlyArray<string> | null): Field<string> =>
  option({
    label,
    type: choices === null ? "string" : "select",
    mappable: false,
    required: false,
    default: preset,
    lines: false,
    choices: choices?.map((value) => ({ value, label: value, sample: null })) ?? null,
    custom: true,
    minimum: null,
    maximum: null,
    judge: null,
    help: "YYYY MM DD HH mm ss and their like; literal text stands in [brackets]",
    read: (value, { field }) => {
      if (typeof value !== "string") throw new Fault("FORMATTER_INPUT_INVALID", `${field} takes a format`, { field })
      const written = literalT(value)
      piecesOf(written, field)
      return written
    },
    absent: () => literalT(preset ?? "")
  })

export const toFormat = (preset: string | null = null): Field<string> => ({
  ...format("Format", preset, offered),
  required: preset === null
})
export const fromFormat = (label: string): Field<string> => format(label, null, null)
