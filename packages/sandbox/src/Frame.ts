/**
 * What goes through the pipes between the pool and a child: three texts, each behind its length in bytes. Bodies travel as
 * JSON text, so that neither the pool's loop nor the child's parses what only the other end needs.
 */
export type Frame = readonly [control: string, input: string, body: string]

const headBytes = 12
/** More than any call or result, so that a broken stream is noticed rather than waited for. */
const maxBytes = 256 * 1_048_576

export const encodeFrame = ([control, input, body]: Frame): Buffer => {
  const controlBytes = Buffer.byteLength(control)
  const inputBytes = Buffer.byteLength(input)
  const bodyBytes = Buffer.byteLength(body)
  const buffer = Buffer.allocUnsafe(headBytes + controlBytes + inputBytes + bodyBytes)
  buffer.writeUInt32LE(controlBytes, 0)
  buffer.writeUInt32LE(inputBytes, 4)
  buffer.writeUInt32LE(bodyBytes, 8)
  buffer.write(control, headBytes)
  buffer.write(input, headBytes + controlBytes)
  buffer.write(body, headBytes + controlBytes + inputBytes)
  return buffer
}

/** Takes the chunks of a stream and hands on its frames. Throws on a length that no frame has. */
export const makeFrameReader = (onFrame: (frame: Frame) => void): ((chunk: Buffer) => void) => {
  let pending: Array<Buffer> = []
  let pendingBytes = 0
  /** Bytes of the frame at the front, as far as known: chunks of a large one are gathered, not joined again and again. */
  let wanted = headBytes

  const lengthOf = (buffer: Buffer): number => {
    const bytes = headBytes + buffer.readUInt32LE(0) + buffer.readUInt32LE(4) + buffer.readUInt32LE(8)
    if (bytes > maxBytes) throw new Error(`a frame of ${bytes} bytes`)
    return bytes
  }

  return (chunk) => {
    pending.push(chunk)
    pendingBytes += chunk.length
    while (pendingBytes >= wanted) {
      const buffer = pending.length === 1 ? (pending[0] ?? chunk) : Buffer.concat(pending, pendingBytes)
      pending = [buffer]
      wanted = lengthOf(buffer)
      if (buffer.length < wanted) return
      const inputAt = headBytes + buffer.readUInt32LE(0)
      const bodyAt = inputAt + buffer.readUInt32LE(4)
      const frame: Frame = [
        buffer.toString("utf8", headBytes, inputAt),
        buffer.toString("utf8", inputAt, bodyAt),
        buffer.toString("utf8", bodyAt, wanted)
      ]
      pending = [buffer.subarray(wanted)]
      pendingBytes = buffer.length - wanted
      wanted = headBytes
      onFrame(frame)
    }
  }
}
