import type { Names } from "./References.ts"
import type { JsonObject } from "./Json.ts"

/** A resource in a file. */
export type Entry = JsonObject & { readonly name: string }

/** A record of the API, of any kind. */
export type Row = JsonObject & { readonly id: string; readonly name: string }

/** What a file has of a kind of resource. */
export interface KindOf {
  readonly singular: string
  /** The valid members of an entry beside its name. */
  readonly members: ReadonlyArray<string>
  readonly needed: ReadonlyArray<string>
  /** The members in which ids are written as references. */
  readonly refers: ReadonlyArray<string>
  /** The members of a record, except its name and those in `refers`, which are taken as they are unless they are here. Secrets are masked. */
  readonly entry: (row: Row, names: Names) => JsonObject
  /** Whether a member is as it is wanted; absent: whether the gateway has all that is written. */
  readonly isSame?: (member: string, current: Entry, wanted: Entry) => boolean
  /** Converts what people may write to the form that is compared and sent, and back. */
  readonly read?: (written: Entry) => Entry
  readonly write?: (entry: Entry) => Entry
}
