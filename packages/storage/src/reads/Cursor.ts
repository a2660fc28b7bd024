import { hash } from "node:crypto"
import * as Characters from "@tidegate/model/Characters"
import { Option, Result, Schema } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Window } from "./Window.ts"

/**
 * Where a list continues: after `id`, in the window that its first page resolved (so that "now-1h" means the same on every page).
 * `seen` rows came before. `back`: towards the start of the list.
 */
export interface Position {
  readonly id: string
  /** The value by which the list is ordered before the id, of the last row of the page. The row may have another value by now. */
  readonly value?: string
  readonly seen: number
  readonly window: Window
  readonly back: boolean
}

/** The filters of a list: a cursor is valid for the same filters only, otherwise pages would have gaps. */
export type FilterKey = string

export const filterKey = (list: string, filters: object): FilterKey =>
  hash("sha256", `${list} ${JSON.stringify(filters, Object.keys(filters).sort())}`, "base64url").slice(0, 12)

const Encoded = Schema.fromJsonString(
  Schema.Struct({
    f: Schema.String,
    i: Schema.String.check(Characters.upTo(100), Schema.isPattern(/^[\w-]*$/)),
    n: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
    w: Schema.Tuple([Schema.Int, Schema.Int]).check(
      Schema.makeFilter(([from, to]) => from >= 0 && from <= to && to < 253_402_300_800_000)
    ),
    b: Schema.optionalKey(Schema.Literal(true)),
    // PostgreSQL's texts have no NUL.
    v: Schema.optionalKey(Schema.String.check(Characters.upTo(1000), Schema.isPattern(/^[^\0]*$/))),
    c: Schema.String
  })
)
const decode = Schema.decodeUnknownOption(Encoded)
const encode = Schema.encodeSync(Encoded)

/**
 * A checksum against mistakes, without a secret: a forged cursor only reads rows of the caller's own team from another position.
 */
const checkOf = (parts: object): string => hash("sha256", JSON.stringify(parts), "base64url").slice(0, 8)

export const writeCursor = (key: FilterKey, { back, id, seen, value, window }: Position): string => {
  const parts = {
    f: key,
    i: id,
    n: seen,
    w: [window.from, window.to],
    ...(back ? { b: true as const } : {}),
    ...(value === undefined ? {} : { v: value })
  } as const
  return Buffer.from(encode({ ...parts, c: checkOf(parts) })).toString("base64url")
}

export const readCursor = (key: FilterKey, text: string): Result.Result<Position, GatewayError> => {
  const position = decode(Buffer.from(text, "base64url").toString("utf8"))
  if (Option.isNone(position)) return Result.fail(fail("INVALID_CURSOR", "the cursor is not one that a list returned"))
  const { b, f, i, n, v, w } = position.value
  const read: Position = {
    id: i,
    ...(v === undefined ? {} : { value: v }),
    seen: n,
    window: { from: w[0], to: w[1] },
    back: b ?? false
  }
  if (writeCursor(f, read) !== text) return Result.fail(fail("INVALID_CURSOR", "the cursor was modified"))
  if (f !== key) return Result.fail(fail("INVALID_CURSOR", "the cursor belongs to a list with other filters"))
  return Result.succeed(read)
}
