import type { Socket } from "node:net"
import { describe, expect, it } from "vitest"
import type { Answer } from "../src/Egress.ts"
import { openEgress, rawTarget } from "./targets.ts"

/** Writes as long as it is listened to, and counts. */
const endless = (beginning: string, more: string) => {
  const sent = { bytes: 0 }
  const answer = (socket: Socket): void => {
    socket.write(beginning)
    const write = (): void => {
      if (socket.destroyed) return
      sent.bytes += more.length
      socket.write(more, () => setImmediate(write))
    }
    write()
  }
  return { answer, sent }
}

const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
const kib = 1_024

const answers: ReadonlyArray<readonly [what: string, beginning: string, more: string]> = [
  ["a status line", "HTTP/1.1 200 ", "O".repeat(64 * kib)],
  ["one interim answer", "HTTP/1.1 103 ", "E".repeat(64 * kib)],
  ["an extension of a chunk", `${chunked}1;`, "x".repeat(64 * kib)],
  ["extensions of chunks with a byte each", chunked, `1;${"x".repeat(kib)}\r\na\r\n`.repeat(16)],
  ["trailers of few bytes each", `${chunked}1\r\na\r\n0\r\n`, "x".repeat(64 * kib)]
]

describe("Endless data outside a response body", () => {
  it.each(answers)("Delivery is cut off when the target sends without end: %s", async (_, beginning, more) => {
    const { answer, sent } = endless(beginning, more)
    await using target = await rawTarget(answer)
    await using egress = await openEgress()
    const { errorCode, errorMessage } = await egress.deliver({ method: "POST", url: target.url, body: "{}" })
    expect([errorCode, errorMessage]).toEqual([
      "RESPONSE_TOO_LARGE",
      expect.stringMatching(/beside its body|Headers Overflow/)
    ])
    await target.allClosed()
    // What the two machines' buffers take, beyond what was read.
    expect(sent.bytes).toBeLessThan(32 * kib * kib)
  })

  it.each(answers)("Stream is cut off when the target sends without end: %s", async (_, beginning, more) => {
    const { answer } = endless(beginning, more)
    await using target = await rawTarget(answer)
    await using egress = await openEgress()
    const { errorCode } = await new Promise<Answer>((resolve) =>
      egress.stream({ method: "GET", url: target.url }, { onHeaders: () => {}, onData: () => true, onEnd: resolve })
    )
    expect(errorCode).toBe("RESPONSE_TOO_LARGE")
    await target.allClosed()
  })
})

describe("Ordinary answers", () => {
  it("Answer in any number of one-byte chunks arrives whole", async () => {
    const bytes = 300_000
    await using target = await rawTarget((socket) => {
      socket.write(`${chunked}${"1\r\na\r\n".repeat(bytes)}0\r\n\r\n`)
    })
    await using egress = await openEgress()
    const { body, errorCode } = await egress.deliver({ method: "GET", url: target.url, captureBytes: 1_000_000 })
    expect([errorCode, body.length]).toEqual([null, bytes])
  })

  it("Size of an answer is counted separately from earlier answers on its connection", async () => {
    await using target = await rawTarget((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nx-large: ${"x".repeat(12 * kib)}\r\ncontent-length: 2\r\n\r\nok`)
    })
    await using egress = await openEgress()
    for (let i = 0; i < 40; i++) {
      expect((await egress.deliver({ method: "GET", url: target.url })).errorCode).toBeNull()
    }
    expect(target.connections()).toBe(1)
  })
})
