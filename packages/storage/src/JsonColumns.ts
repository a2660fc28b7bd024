import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"
import { readJson, readJsonbBytes, utf8 } from "@tidegate/json/JsonText"

const { OID } = PgTypes

type Read = (bytes: Uint8Array, offset: number, size: number) => unknown

/** The byte that PostgreSQL puts before a `jsonb`: the version of its format. */
const version = 1

const jsonb: Read = (bytes, offset, size) => {
  if (bytes[offset] !== version) throw new Error("its form has an unknown version")
  return readJsonbBytes(bytes, offset + 1, offset + size)
}

const json: Read = (bytes, offset, size) => readJson(utf8(bytes.subarray(offset, offset + size)))

const codecOf = (oid: number, readAt: Read): PgTypes.Codec<unknown> => {
  const read = (bytes: Uint8Array, offset: number, size: number) =>
    Result.try({
      try: () => readAt(bytes, offset, size),
      catch: (cause) => new PgTypes.CodecError({ message: `JSON that cannot be read: ${String(cause)}` })
    })
  return {
    encode: (value) => PgTypes.encode(value, oid),
    decode: (bytes) => read(bytes, 0, bytes.length),
    read
  }
}

/** How columns are parsed: JSON with all digits of its numbers, which the client's own parser rounds. */
export const columnTypes = (): PgTypes.Registry => {
  const types = PgTypes.makeRegistry()
  types.register(OID.json, codecOf(OID.json, json), { arrayOid: OID.jsonArray })
  types.register(OID.jsonb, codecOf(OID.jsonb, jsonb), { arrayOid: OID.jsonbArray })
  return types
}
