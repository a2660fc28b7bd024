/**
 * The message format of the pipes between the pool and a child: several texts, each after its length in bytes. Bodies travel as JSON
 * text, so that neither side parses what only the other side needs. Each call of a batch has its own texts, so that one bad call does not spoil
 * the others.
 */
export type Frame = readonly [control: string, ...texts: ReadonlyArray<string>]

const lengthBytes = 4
/** More than any batch or result. A length above it shows that the stream is broken, instead of waiting for bytes that never come. */
const maxBytes = 256 * 1_048_576
const maxTexts = 256

export const encodeFrame = (texts: Frame): Buffer => {
  const lengths = texts.map((text) => Buffer.byteLength(text))
  let at = (1 + texts.length) * lengthBytes
  const buffer = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + length, at))
  buffer.writeUInt32LE(texts.length, 0)
  for (const [index, text] of texts.entries()) {
    buffer.writeUInt32LE(lengths[index] ?? 0, (1 + index) * lengthBytes)
    at += buffer.write(text, at)
  }
  return buffer
}

/** Takes the chunks of a stream and passes on its frames. Throws if a length is invalid. */
export const makeFrameReader = (onFrame: (frame: Frame) => void): ((chunk: Buffer) => void) => {
  let pending: Array<Buffer> = []
  let pendingBytes = 0
  /** Bytes of the first frame, as far as known. The chunks of a large frame are collected and joined once. */
  let wanted = lengthBytes

  /** Bytes of the frame, as far as its beginning tells. */
  const bytesOf = (buffer: Buffer): number => {
    const texts = buffer.readUInt32LE(0)
    if (texts === 0 || texts > maxTexts) throw new Error(`a frame of ${texts} texts`)
    const head = (1 + texts) * lengthBytes
    if (buffer.length < head) return head
    let bytes = head
    for (let at = lengthBytes; at < head; at += lengthBytes) bytes += buffer.readUInt32LE(at)
    if (bytes > maxBytes) throw new Error(`a frame of ${bytes} bytes`)
    return bytes
  }

  const decode = (buffer: Buffer): Frame => {
    let at = (1 + buffer.readUInt32LE(0)) * lengthBytes
    const take = (index: number): string => {
      const start = at
      at += buffer.readUInt32LE((1 + index) * lengthBytes)
      return buffer.toString("utf8", start, at)
    }
    const control = take(0)
    return [control, ...Array.from({ length: buffer.readUInt32LE(0) - 1 }, (_, index) => take(index + 1))]
  }

  return (chunk) => {
    pending.push(chunk)
    pendingBytes += chunk.length
    while (pendingBytes >= wanted) {
      const buffer = pending.length === 1 ? (pending[0] ?? chunk) : Buffer.concat(pending, pendingBytes)
      pending = [buffer]
      const bytes = bytesOf(buffer)
      if (buffer.length < bytes) {
        wanted = bytes
        return
      }
      pending = [buffer.subarray(bytes)]
      pendingBytes = buffer.length - bytes
      wanted = lengthBytes
      onFrame(decode(buffer))
    }
  }
}
