import type { Received } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { encodingNames, longestValue, mostHeaders, typeNames } from "./Consumer.ts"

/** An entry of a stream becomes a message: one of its fields is the body, or all of them are, as JSON. */

export type EntryContent = Pick<Received, "contentType" | "contentEncoding" | "headers" | "body" | "size">

/** What JSON writes around a field: four quotation marks, a colon and a comma. */
const aroundField = 6

/** Collects the fields of an entry as they arrive. It keeps no more bytes than two messages have. */
export class EntryFields {
  readonly #bodyField: string
  /** Null: the entry has no field for the body; what was too large for a body has no bytes. */
  #body: { readonly bytes: Buffer | null; readonly size: number } | null = null
  readonly #fields = new Map<string, string>()
  /** Bytes of the object with all fields. */
  #size = 2
  #name = ""
  /** Bytes that are kept of it. */
  kept = 0

  constructor(bodyField: string) {
    this.#bodyField = bodyField
  }

  /** `bytes` is empty if the name has more bytes than are read of it. */
  name(size: number, bytes: Buffer): void {
    this.#size += size + aroundField
    this.#name = bytes.length === size ? bytes.toString("utf8") : ""
  }

  value(size: number, bytes: Buffer): void {
    this.#size += size
    if (this.#name === this.#bodyField) {
      this.#body = { bytes: size > maxMessageBody ? null : bytes, size }
      this.kept += bytes.length
    }
    if (this.#size > maxMessageBody) return
    this.#fields.set(this.#name, bytes.toString("utf8"))
    this.kept += size
  }

  made(): EntryContent {
    if (this.#body === null) return this.#object()
    return {
      contentType: this.#first(typeNames),
      contentEncoding: this.#first(encodingNames),
      headers: this.#headers((name) => ![this.#bodyField, ...typeNames, ...encodingNames].includes(name)),
      body: this.#body.bytes,
      size: this.#body.size
    }
  }

  #object(): EntryContent {
    const members = Array.from(this.#fields, ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
    const body = Buffer.from(`{${members.join(",")}}`)
    const size = Math.max(this.#size, body.length)
    return {
      contentType: "application/json",
      contentEncoding: null,
      headers: this.#headers((name) => name === loopHeader),
      body: size > maxMessageBody ? null : body,
      size
    }
  }

  #first(names: ReadonlyArray<string>): string | null {
    const value = names.map((name) => this.#fields.get(name)).find((value) => value !== undefined && value !== "")
    return value !== undefined && value.length <= longestValue ? value : null
  }

  #headers(isOne: (name: string) => boolean): Received["headers"] {
    const headers: Array<readonly [string, string]> = []
    for (const [name, value] of this.#fields) {
      if (headers.length === mostHeaders) break
      if (isOne(name) && value !== "" && value.length <= longestValue) headers.push([name, value])
    }
    return headers
  }
}
