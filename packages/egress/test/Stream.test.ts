import { describe, expect, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { getEventListeners } from "node:events"
import type { Socket } from "node:net"
import { text } from "node:stream/consumers"
import { gzipSync } from "node:zlib"
import type { Outbound, Streaming } from "../src/Egress.ts"
import type { Answer, AnswerReader } from "../src/Exchange.ts"
import { gate, httpTarget, openEgress, rawTarget, speak, spoken, tcpTarget } from "./targets.ts"

type Egress = Awaited<ReturnType<typeof openEgress>>

interface Read {
  readonly streaming: Streaming
  /** What came, in order: the status, then the bytes. */
  readonly events: Array<number | string>
  readonly ended: Promise<Answer>
}

/** Streams an answer and notes what comes; fails on anything that comes in the wrong order. */
const read = (
  egress: Egress,
  outbound: Partial<Outbound> & { readonly url: string },
  reader: Partial<AnswerReader> = {}
): Read => {
  const events: Array<number | string> = []
  const { promise, reject, resolve } = Promise.withResolvers<Answer>()
  let over = false
  const expectOpen = (isOpen: boolean): void => {
    if (over || !isOpen) reject(new Error("an event in the wrong order"))
  }
  const streaming = egress.stream(
    { method: "POST", body: "x", ...outbound },
    {
      onHeaders: (status, headers) => {
        expectOpen(events.length === 0)
        events.push(status)
        reader.onHeaders?.(status, headers)
      },
      onData: (chunk) => {
        expectOpen(events.length > 0)
        events.push(chunk.toString("latin1"))
        return reader.onData?.(chunk) ?? true
      },
      onEnd: (answer) => {
        expectOpen(true)
        over = true
        resolve(answer)
      }
    }
  )
  if (over) throw new Error("ended before it was returned")
  return { streaming, events, ended: promise }
}

const bodyOf = (events: ReadonlyArray<number | string>): string => events.slice(1).join("")

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

describe("Streamed answer", () => {
  it("Streamed answer is passed on while it arrives", async () => {
    const first = gate()
    const second = gate()
    const steps = [gate(), gate()]
    await using target = await httpTarget(async (_, response) => {
      response.writeHead(201, { "x-twice": ["1", "2"] }).flushHeaders()
      await first.opened
      response.write("one")
      await second.opened
      response.end("two")
    })
    await using egress = await openEgress()
    const { ended, events } = read(
      egress,
      { url: target.url },
      {
        onHeaders: (_, headers) => {
          expect(headers["x-twice"]).toEqual(["1", "2"])
          steps[0]!.open()
        },
        onData: () => {
          steps[1]!.open()
          return true
        }
      }
    )
    await steps[0]!.opened
    expect(events).toEqual([201])
    first.open()
    await steps[1]!.opened
    expect(events).toEqual([201, "one"])
    second.open()
    const answer = await ended
    expect(events).toEqual([201, "one", "two"])
    expect(answer).toMatchObject({ status: 201, errorCode: null, errorMessage: null, bodyTruncated: false })
    expect(answer.body.toString()).toBe("onetwo")
    expect(answer.respondedAt).toBeGreaterThanOrEqual(answer.sentAt)
  })

  it.each([204, 301, 304, 307, 401, 404, 500, 599])("Streamed answer with status %d is passed on", async (status) => {
    await using target = await httpTarget((_, response) =>
      response.writeHead(status, { location: "http://10.0.0.1/" }).end()
    )
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url })
    expect(await ended).toMatchObject({ status, errorCode: null, headers: { location: "http://10.0.0.1/" } })
    expect(events).toEqual([status])
  })

  it("Streamed answer contains only the final status after interim answers", async () => {
    await using target = await rawTarget((socket) =>
      socket.write(`HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}`)
    )
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url })
    expect((await ended).headers).toEqual({ "content-length": "2" })
    expect(events).toEqual([200, "ok"])
  })

  it("Streamed answer is not decompressed", async () => {
    const packed = gzipSync("a".repeat(100_000))
    await using target = await httpTarget((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(packed)
    )
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url })
    await ended
    expect(Buffer.from(bodyOf(events), "latin1").equals(packed)).toBe(true)
  })

  it("Streamed answer to HEAD has no body, whatever its length header says", async () => {
    await using target = await httpTarget((_, response) => response.writeHead(200, { "content-length": 5 }).end())
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url, method: "HEAD", body: null })
    expect((await ended).headers["content-length"]).toBe("5")
    expect(events).toEqual([200])
  })

  it.each([
    { limit: 0, kept: 0, cut: true },
    { limit: 10, kept: 10, cut: true },
    { limit: 99_999, kept: 99_999, cut: true },
    { limit: 100_000, kept: 100_000, cut: false },
    { limit: 100_001, kept: 100_000, cut: false }
  ])("Streamed answer of 100,000 bytes passes whole while $limit bytes are kept", async ({ cut, kept, limit }) => {
    const body = Array.from({ length: 20_000 }, (_, index) => String(index).padStart(5, "0")).join("")
    await using target = await httpTarget((_, response) => response.end(body))
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url, captureBytes: limit })
    const answer = await ended
    expect(bodyOf(events) === body).toBe(true)
    expect(answer).toMatchObject({ errorCode: null, bodyTruncated: cut })
    expect(answer.body.toString() === body.slice(0, kept)).toBe(true)
  })

  it("Streamed request can have a body under any method", async () => {
    await using target = await httpTarget(async (request, response) =>
      response.end(`${request.method} ${await text(request)}`)
    )
    await using egress = await openEgress()
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      const { ended, events } = read(egress, { url: target.url, method, body: Buffer.from("body") })
      await ended
      expect(bodyOf(events)).toBe(`${method} body`)
    }
  })

  it("Streamed answer leaves its connection open for the next request", async () => {
    await using target = await httpTarget((_, response) => response.end("a".repeat(200_000)))
    await using egress = await openEgress()
    for (let index = 0; index < 10; index++) await read(egress, { url: target.url }).ended
    expect(target.connections()).toBe(1)
  })
})

describe("Streamed answer that breaks off", () => {
  const heads = {
    chunked: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n100\r\nhalf",
    "chunked, last on its connection":
      "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n100\r\nhalf",
    sized: "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
    "sized, last on its connection": "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100\r\n\r\nhalf",
    "ending with its connection": "HTTP/1.1 200 OK\r\n\r\nhalf"
  }
  const breakOff = async (head: string, how: (socket: Socket) => void) => {
    const seen = gate()
    await using target = await rawTarget((socket) => {
      socket.write(head)
      void seen.opened.then(() => how(socket))
    })
    await using egress = await openEgress()
    const { ended, events } = read(
      egress,
      { url: target.url },
      {
        onData: () => {
          seen.open()
          return true
        }
      }
    )
    const answer = await ended
    expect(events).toEqual([200, "half"])
    expect(answer.status).toBe(200)
    await target.allClosed()
    return answer.errorCode
  }

  for (const [name, head] of Object.entries(heads)) {
    it(`Streamed answer is cut by a connection reset: ${name}`, async () => {
      expect(await breakOff(head, (socket) => socket.resetAndDestroy())).toBe("CONNECTION_RESET")
    })
  }

  it.each([
    ["chunked", "SOCKET_CLOSED"],
    ["chunked, last on its connection", "PROTOCOL_ERROR"],
    ["sized", "SOCKET_CLOSED"],
    ["sized, last on its connection", "SOCKET_CLOSED"],
    // The one form of a body for which this is the end.
    ["ending with its connection", null]
  ] as const)("End of the connection within a streamed answer that is %s gives the error %s", async (name, code) => {
    expect(await breakOff(heads[name], (socket) => socket.end())).toBe(code)
  })

  it("Malformed chunk within a streamed answer gives the error PROTOCOL_ERROR", async () => {
    const head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"
    expect(await breakOff(head, (socket) => socket.write("no size\r\n"))).toBe("PROTOCOL_ERROR")
  })

  it("Streamed answer that ends within its headers gives SOCKET_CLOSED and no status", async () => {
    await using target = await rawTarget((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-le"))
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url })
    expect(await ended).toMatchObject({ status: null, errorCode: "SOCKET_CLOSED" })
    expect(events).toEqual([])
  })
})

describe("Time limit of a stream", () => {
  const timeoutMs = 150

  it("Time limit of a stream covers the wait for the headers", async () => {
    await using target = await tcpTarget((socket) => socket.resume().write("HTTP/1.1 200 OK\r\ncontent-le"))
    await using egress = await openEgress()
    const startedAt = performance.now()
    const { ended, events } = read(egress, { url: target.url, timeoutMs })
    const expected = { status: null, errorCode: "TIMEOUT", errorMessage: "no answer within 150 ms" }
    expect(await ended).toMatchObject(expected)
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(timeoutMs - 2)
    expect(events).toEqual([])
    await target.allClosed()
  })

  it("Interim answers do not extend the time limit of a stream", async () => {
    await using target = await tcpTarget((socket) => {
      socket.resume()
      const timer = setInterval(() => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 10)
      socket.on("close", () => clearInterval(timer))
    })
    await using egress = await openEgress()
    expect((await read(egress, { url: target.url, timeoutMs }).ended).errorCode).toBe("TIMEOUT")
  })

  it("Time limit of a stream covers the wait for a connection, and an expired request is never sent", async () => {
    const answering = gate()
    const bodies: Array<string> = []
    await using target = await httpTarget(async (request, response) => {
      bodies.push(await text(request))
      await answering.opened
      response.end("ok")
    })
    await using egress = await openEgress({ streamsPerOrigin: 1 })
    const first = read(egress, { url: target.url, body: "first" })
    const second = read(egress, { url: target.url, body: "second", timeoutMs })
    expect(await second.ended).toMatchObject({ status: null, errorCode: "TIMEOUT" })
    answering.open()
    await first.ended
    expect((await read(egress, { url: target.url, body: "third" }).ended).status).toBe(200)
    expect(bodies).toEqual(["first", "third"])
    expect(target.connections()).toBe(1)
  })

  it("Time limit of a stream ends an answer that stops within its body", async () => {
    await using target = await rawTarget((socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"))
    await using egress = await openEgress()
    const { ended, events } = read(egress, { url: target.url, timeoutMs: 1_000 })
    const expected = { status: 200, errorCode: "TIMEOUT", errorMessage: "no more of the answer within 1000 ms" }
    expect(await ended).toMatchObject(expected)
    expect(events).toEqual([200, "half"])
    await target.allClosed()
  })

  it("Time limit of a stream does not end an answer that keeps arriving", async () => {
    await using target = await httpTarget((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
      speak(response)
    })
    await using egress = await openEgress()
    const startedAt = performance.now()
    const { ended, events } = read(egress, { url: target.url, timeoutMs: 2_000 })
    expect((await ended).errorCode).toBeNull()
    expect(performance.now() - startedAt).toBeGreaterThan(2_000)
    expect(bodyOf(events)).toBe(spoken)
  })

  it("Time limit of a stream pauses while the reader is slow and resumes afterwards", async () => {
    await using target = await rawTarget((socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"))
    await using egress = await openEgress()
    const held = gate()
    let isOver = false
    const { ended, streaming } = read(
      egress,
      { url: target.url, timeoutMs: 1_500 },
      {
        onData: () => {
          held.open()
          return false
        }
      }
    )
    void ended.then(() => (isOver = true))
    await held.opened
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    expect(isOver).toBe(false)
    streaming.resume()
    expect((await ended).errorCode).toBe("TIMEOUT")
  })
})

describe("Slow reader of a stream", () => {
  const size = 64 * 1024 * 1024
  const block = Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 31) % 256))
  const expected = createHash("sha256")
  for (let sent = 0; sent < size; sent += block.length) expected.update(block)
  const digest = expected.digest("hex")

  /** Sends as much as it gets rid of, and says how much that was. */
  const pouring = async (head: string, finish: (socket: Socket) => void) => {
    const poured = { bytes: 0 }
    const target = await rawTarget((socket) => {
      socket.write(head)
      const more = (): void => {
        while (poured.bytes < size) {
          poured.bytes += block.length
          if (!socket.write(block)) return
        }
        socket.off("drain", more)
        finish(socket)
      }
      socket.on("drain", more)
      more()
    })
    return { target, poured }
  }

  it.each([
    { body: "sized", head: `HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`, finish: () => undefined },
    { body: "ending with its connection", head: "HTTP/1.1 200 OK\r\n\r\n", finish: (socket: Socket) => socket.end() }
  ])("Slow reader slows the target down and gets every byte of a body that is $body", async ({ finish, head }) => {
    const { poured, target } = await pouring(head, finish)
    await using _ = target
    await using egress = await openEgress()
    const hash = createHash("sha256")
    let got = 0
    let isHeld = true
    const held = gate()
    const { ended, streaming } = read(
      egress,
      { url: target.url, captureBytes: 100 },
      {
        onData: (chunk) => {
          hash.update(chunk)
          got += chunk.length
          held.open()
          if (!isHeld) setImmediate(streaming.resume.bind(streaming))
          return false
        }
      }
    )
    await held.opened
    // Until the target stands still: nothing more fits into the buffers between.
    for (let before = -1; before !== poured.bytes;) {
      before = poured.bytes
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(got).toBeLessThanOrEqual(131_072)
    // The kernel's buffers, some megabytes.
    expect(poured.bytes).toBeLessThan(size / 2)
    isHeld = false
    streaming.resume()
    expect(await ended).toMatchObject({ errorCode: null, bodyTruncated: true })
    expect(got).toBe(size)
    expect(hash.digest("hex")).toBe(digest)
  })

  it("Slow reader is told that the target broke off in the meantime", async () => {
    let connection: Socket | undefined
    await using target = await rawTarget((socket) => {
      connection = socket
      socket.write("HTTP/1.1 200 OK\r\n\r\nhalf")
    })
    await using egress = await openEgress()
    const held = gate()
    const { ended, events } = read(
      egress,
      { url: target.url },
      {
        onData: () => {
          held.open()
          return false
        }
      }
    )
    await held.opened
    connection!.resetAndDestroy()
    expect(await ended).toMatchObject({ status: 200, errorCode: "CONNECTION_RESET" })
    expect(events).toEqual([200, "half"])
  })
})

describe("Cancellation of a stream", () => {
  it("Cancellation ends a streamed answer within its body, and its connection", async () => {
    await using target = await rawTarget((socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nhalf"))
    await using egress = await openEgress()
    const { ended, events, streaming } = read(
      egress,
      { url: target.url },
      {
        onData: () => {
          setImmediate(() => streaming.cancel("enough"))
          return true
        }
      }
    )
    const expected = { status: 200, errorCode: "NETWORK_REQUEST_CANCELED", errorMessage: "enough" }
    expect(await ended).toMatchObject(expected)
    expect(events).toEqual([200, "half"])
    await target.allClosed()
    streaming.cancel("again")
    streaming.resume()
  })

  it("Cancellation from inside the stream's reader ends the stream", async () => {
    await using target = await rawTarget((socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nhalf"))
    await using egress = await openEgress()
    for (const at of ["onHeaders", "onData"] as const) {
      const { ended, streaming } = read(
        egress,
        { url: target.url },
        {
          [at]: () => {
            streaming.cancel("enough")
            return false
          }
        }
      )
      expect((await ended).errorCode).toBe("NETWORK_REQUEST_CANCELED")
    }
    await target.allClosed()
  })

  it("Cancellation of a stream before a connection exists sends nothing", async () => {
    await using target = await tcpTarget((socket) => socket.on("data", () => socket.write(ok)))
    await using egress = await openEgress()
    const { ended, events, streaming } = read(egress, { url: target.url })
    streaming.cancel("never mind")
    expect(await ended).toMatchObject({ status: null, errorCode: "NETWORK_REQUEST_CANCELED" })
    expect(events).toEqual([])
    expect((await read(egress, { url: target.url }).ended).status).toBe(200)
  })

  it("Cancellation of a stream by a signal ends it and leaves no listener on the signal", async () => {
    const reached = gate()
    await using target = await rawTarget(reached.open)
    await using egress = await openEgress()
    const controller = new AbortController()
    const { ended } = read(egress, { url: target.url, signal: controller.signal })
    await reached.opened
    controller.abort()
    expect(await ended).toMatchObject({ status: null, errorCode: "NETWORK_REQUEST_CANCELED" })
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    await target.allClosed()
  })

  it("Reader that throws ends its own stream and does not harm the next", async () => {
    await using target = await rawTarget((socket) => socket.write(ok))
    await using egress = await openEgress()
    const thrown = (): never => {
      throw new Error("reader")
    }
    for (const reader of [{ onHeaders: thrown }, { onData: thrown }]) {
      const { ended } = read(egress, { url: target.url }, reader)
      expect(await ended).toMatchObject({ status: 200, errorCode: "UNKNOWN", errorMessage: "reader" })
    }
    expect((await read(egress, { url: target.url }).ended).errorCode).toBeNull()
  })
})

describe("Streams that are not sent", () => {
  it.each([
    ["", "MISSING_URL"],
    ["nonsense", "INVALID_URL"],
    ["ftp://127.0.0.1/", "INVALID_URL"],
    ["http://user:secret@127.0.0.1/", "INVALID_URL"],
    ["http://10.1.2.3/", "TARGET_NOT_ALLOWED"],
    ["http://169.254.169.254/latest/meta-data", "TARGET_NOT_ALLOWED"],
    ["http://[::ffff:10.0.0.1]/", "TARGET_NOT_ALLOWED"],
    ["http://inside.example/", "TARGET_NOT_ALLOWED"],
    ["http://outside.example/", "DNS_LOOKUP_FAILED"]
  ])("Stream to the URL %s is not sent and gives %s", async (url, code) => {
    const resolve = async (host: string) => (host === "inside.example" ? ["10.0.0.7"] : [])
    await using egress = await openEgress({ resolve })
    const { ended, events } = read(egress, { url })
    expect(await ended).toMatchObject({ status: null, errorCode: code })
    expect(events).toEqual([])
  })

  it("Stream with an invalid header is not sent and gives INVALID_CHARACTER", async () => {
    await using target = await rawTarget((socket) => socket.write(ok))
    await using egress = await openEgress()
    const { ended } = read(egress, { url: target.url, headers: ["x-a", "b\r\nx-c: d"] })
    expect(await ended).toMatchObject({ status: null, errorCode: "INVALID_CHARACTER" })
    expect(target.connections()).toBe(0)
  })
})

describe("Streams and deliveries", () => {
  it("Streams on all of their connections leave the connections of deliveries free", async () => {
    await using target = await httpTarget((request, response) => {
      if (request.url === "/stream") response.write("for ever")
      else response.end("ok")
    })
    await using egress = await openEgress({ connectionsPerOrigin: 1, streamsPerOrigin: 1 })
    const open = gate()
    const { ended, streaming } = read(
      egress,
      { url: `${target.url}/stream` },
      {
        onData: () => {
          open.open()
          return true
        }
      }
    )
    await open.opened
    expect((await egress.deliver({ method: "POST", url: target.url, body: "x" })).status).toBe(200)
    expect(egress.openOrigins()).toBe(2)
    streaming.cancel("done")
    await ended
  })

  it("Shutdown lets a stream end in time and cancels it afterwards", async () => {
    const ending = gate()
    await using target = await httpTarget(async (request, response) => {
      response.write("begun")
      if (request.url === "/") await ending.opened
      else await new Promise(() => undefined)
      response.end()
    })
    for (const [path, code] of [
      ["/", null],
      ["/never", "NETWORK_REQUEST_CANCELED"]
    ] as const) {
      const egress = await openEgress({ drainMs: path === "/" ? 10_000 : 50 })
      const begun = gate()
      const { ended } = read(
        egress,
        { url: target.url + path },
        {
          onData: () => {
            begun.open()
            return true
          }
        }
      )
      await begun.opened
      const closing = egress.close()
      ending.open()
      expect({ path, code: (await ended).errorCode }).toEqual({ path, code })
      await closing
      expect((await read(egress, { url: target.url }).ended).errorCode).toBe("NETWORK_REQUEST_CANCELED")
    }
  })
})
