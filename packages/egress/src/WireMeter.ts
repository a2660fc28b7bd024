import type { Socket } from "node:net"

/**
 * Bytes that a target may send beside the body of its answer: status line, headers, interim answers, chunk sizes and their extensions. The
 * HTTP client limits only the headers of one answer, and reads the rest without a limit.
 */
const maxBeside = 256 * 1024
/** Additional bytes allowed for each byte of the body: chunks of one byte take six. */
const perByte = 17

/** The target has sent more than an answer needs. The code is the contract's. */
class TooMuchBeside extends Error {
  override readonly name = "TooMuchBeside"
  readonly code = "RESPONSE_TOO_LARGE"

  constructor() {
    super(`the answer has more than ${maxBeside} bytes beside its body`)
  }
}

/** Bytes of one connection that belong to no body. */
interface Meter {
  beside: number
}

/**
 * The connection that was read last. The client reads and parses in one synchronous step, so its handlers run for this connection; they are
 * not told which one it is.
 */
let current: Meter = { beside: 0 }

/** Counts the bytes that the client reads from a connection, and closes it above the limit. */
export const metered = (socket: Socket): void => {
  const meter: Meter = { beside: 0 }
  const read = socket.read.bind(socket)
  socket.read = (size?: number): unknown => {
    current = meter
    if (meter.beside > maxBeside) {
      socket.destroy(new TooMuchBeside())
      return null
    }
    const chunk = read(size) as Buffer | null
    if (chunk !== null) meter.beside += chunk.length
    return chunk
  }
}

/** Bytes of a body have arrived. Call it from the client's handler, before the client reads again. */
export const bodyRead = (bytes: number): void => {
  current.beside = Math.max(0, current.beside - bytes * perByte)
}

/** An answer has ended, with all its bytes. */
export const answerRead = (): void => {
  current.beside = 0
}
