/** JSON and binary parts in one buffer: the length of the JSON (4 bytes), the JSON, and then the parts one after the other. */
export const pack = (json: string, parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const head = Buffer.from(json)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, ...parts])
}

export interface Unpacked {
  readonly json: unknown
  /** A copy of the next part, of so many bytes: whoever keeps one part must not keep the whole message in memory. */
  readonly next: (bytes: number) => Buffer
}

export const unpack = (bytes: Uint8Array): Unpacked => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 4 + buffer.readUInt32BE(0)
  const json: unknown = JSON.parse(buffer.toString("utf8", 4, at))
  return {
    json,
    next: (size) => {
      const part = Buffer.from(buffer.subarray(at, at + size))
      at += size
      return part
    }
  }
}
