import type { Gateway } from "./Gateway.ts"

/** Secrets that a test plants, and then searches for where they must not appear. */
export class Planted {
  readonly #secrets = new Map<string, string>()
  #count = 0

  /** Makes a unique secret. */
  plant(kind: string): string {
    const secret = `pl4nted-${kind.replaceAll(/\W+/g, "-")}-${++this.#count}-s3cr3t-R`
    this.add(kind, secret)
    return secret
  }

  /** Adds a secret that was made elsewhere. */
  add(kind: string, secret: string): string {
    this.#secrets.set(secret, kind)
    return secret
  }

  get size(): number {
    return this.#secrets.size
  }

  /** The kinds of secrets that a text contains, in any of their encoded forms. */
  in(text: string): ReadonlyArray<string> {
    return [...this.#secrets].flatMap(([secret, kind]) =>
      formsOf(secret).some((form) => text.includes(form)) ? [`${kind}: ${around(text, formsOf(secret))}`] : []
    )
  }
}

/** The text around the beginning of a secret: enough to find the place. */
const around = (text: string, forms: ReadonlyArray<string>): string => {
  const at = Math.min(...forms.map((form) => text.indexOf(form)).filter((index) => index >= 0))
  return text.slice(Math.max(0, at - 160), at + 40)
}

/**
 * The forms of a secret: plain, in JSON, in JSON in JSON, percent-encoded, in hex, and in base64 at each of the three possible
 * offsets.
 */
export const formsOf = (secret: string): ReadonlyArray<string> => {
  const json = JSON.stringify(secret).slice(1, -1)
  const inBase64 = [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    // The first and last characters depend on the neighbouring bytes, so they are cut off.
    const text = bytes
      .toString("base64")
      .replace(/=+$/, "")
      .slice(before === 0 ? 0 : 4, -2)
    return [text, text.replaceAll("+", "-").replaceAll("/", "_")]
  })
  const hex = Buffer.from(secret).toString("hex")
  return [
    ...new Set([
      secret,
      json,
      JSON.stringify(json).slice(1, -1),
      encodeURIComponent(secret),
      hex,
      hex.toUpperCase(),
      ...inBase64
    ])
  ]
}

/** All tables with their rows as JSON. Bytes are in hex, and also as text if they are text. */
export const dumpOf = async (gateway: Gateway): Promise<ReadonlyMap<string, string>> => {
  const tables = await gateway.sql(`select c.oid::regclass::text as name, (
      select coalesce(array_agg(a.attname::text), '{}') from pg_attribute a
      where a.attrelid = c.oid and a.atttypid = 'bytea'::regtype and not a.attisdropped) as bytes
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`)
  const dump = new Map<string, string>()
  for (const { bytes, name } of tables) {
    const texts = (bytes as ReadonlyArray<string>)
      .map((column) => `|| coalesce(encode(${column}, 'escape'), '')`)
      .join(" ")
    const [row] = await gateway.sql(
      `select coalesce(string_agg(row_to_json(t)::text ${texts}, chr(10)), '') as text from ${name} t`
    )
    dump.set(name, row.text)
  }
  return dump
}
