import { describe, expect, it } from "@effect/vitest"
import { vi } from "vitest"
import { errorCodeOf, errorMessageOf } from "../src/AttemptErrorCode.ts"
import { authority, httpTarget, openEgress, rawTarget, tcpTarget, tlsTarget } from "./targets.ts"

const coded = (code: string): Error => Object.assign(new Error(code), { code })

describe("Connection errors", () => {
  it("Delivery to a port where nobody listens fails with CONNECTION_REFUSED", async () => {
    const target = await tcpTarget(() => undefined)
    await target[Symbol.asyncDispose]()
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: null, errorCode: "CONNECTION_REFUSED", body: Buffer.alloc(0) })
    expect(answer.errorMessage).toContain("ECONNREFUSED")
  })

  it("Delivery that all addresses refuse fails with CONNECTION_REFUSED and names each address", async () => {
    const target = await tcpTarget(() => undefined)
    await target[Symbol.asyncDispose]()
    await using egress = await openEgress({ resolve: async () => ["127.0.0.1", "::1"] })
    const answer = await egress.deliver({ method: "POST", url: `http://two.example:${target.port}/` })
    expect(answer.errorCode).toBe("CONNECTION_REFUSED")
    expect(answer.errorMessage?.split("; ")).toHaveLength(2)
  })

  it("Connection reset before an answer gives the error CONNECTION_RESET", async () => {
    await using target = await rawTarget((socket) => socket.resetAndDestroy())
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: null, errorCode: "CONNECTION_RESET" })
  })

  it("Connection reset within a body gives CONNECTION_RESET and keeps the received part", async () => {
    await using target = await rawTarget((socket) =>
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", async () => {
        // A reset discards unread bytes. The reader runs on the same event loop, and each iteration reads what has arrived.
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
        socket.resetAndDestroy()
      })
    )
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: "CONNECTION_RESET", bodyTruncated: false })
    expect(answer.body.toString()).toBe("half")
  })

  it("Connection closed or half closed before an answer gives the error SOCKET_CLOSED", async () => {
    await using egress = await openEgress()
    await using closing = await rawTarget((socket) => socket.destroy())
    expect((await egress.deliver({ method: "POST", url: closing.url, body: "x" })).errorCode).toBe("SOCKET_CLOSED")
    await using halfClosing = await rawTarget((socket) => socket.end())
    expect((await egress.deliver({ method: "POST", url: halfClosing.url, body: "x" })).errorCode).toBe("SOCKET_CLOSED")
    await using early = await tcpTarget((socket) => socket.end())
    expect((await egress.deliver({ method: "POST", url: early.url, body: "x" })).errorCode).toBe("SOCKET_CLOSED")
  })

  it.each(["", "connection: close\r\n"])("Connection closed within a body gives SOCKET_CLOSED: %j", async (header) => {
    await using target = await rawTarget((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\n${header}content-length: 10\r\n\r\nhalf`)
    )
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: "SOCKET_CLOSED" })
    expect(answer.body.toString()).toBe("half")
  })

  it("Chunked body that ends early gives the error SOCKET_CLOSED", async () => {
    await using target = await rawTarget((socket) =>
      socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n")
    )
    await using egress = await openEgress()
    expect((await egress.deliver({ method: "POST", url: target.url })).errorCode).toBe("SOCKET_CLOSED")
  })

  it("DNS lookup or connection that never completes fails with TIMEOUT after the connect timeout", async () => {
    await using egress = await openEgress({ connectTimeoutMs: 100, resolve: () => new Promise(() => undefined) })
    const answer = await egress.deliver({ method: "POST", url: "http://silent.example/" })
    expect(answer.errorCode).toBe("TIMEOUT")
    expect(answer.errorMessage).toContain("Connect Timeout")
  })

  // No portable machine produces these on demand; the codes are the system's.
  it.each([
    ["EHOSTUNREACH", "HOST_UNREACHABLE"],
    ["ENETUNREACH", "NETWORK_UNREACHABLE"],
    ["ETIMEDOUT", "TIMEOUT"],
    ["EPIPE", "SOCKET_CLOSED"],
    ["EADDRNOTAVAIL", "NETWORK_ERROR"],
    ["EACCES", "NETWORK_ERROR"],
    ["EMFILE", "INTERNAL_ERROR"],
    ["ESOMETHINGNEW", "UNKNOWN"]
  ])("System error %s is reported as %s", (cause, code) => expect(errorCodeOf(coded(cause))).toBe(code))

  it("Error without a code or message is reported with both", () => {
    expect(errorCodeOf(new Error("odd"))).toBe("UNKNOWN")
    expect(errorMessageOf(new AggregateError([new Error("one"), "two"]))).toBe("one; two")
  })

  it("Error message is limited in length and contains only characters that a database can store", () => {
    expect(errorMessageOf(new Error(`DNS:${"a.example, ".repeat(100_000)}`)).length).toBe(1_000)
    const many = Array.from({ length: 5_000 }, (_, i) => new Error(`address ${i}`))
    expect(errorMessageOf(new AggregateError(many)).length).toBe(1_000)
    expect(errorMessageOf(new Error("a\0b\ud800"))).toBe("a\ufffdb\ufffd")
  })
})

describe("TLS errors", () => {
  it.each([
    ["self-signed.pem", "SELF_SIGNED_CERT"],
    ["stranger-whole-chain.pem", "SELF_SIGNED_CERT"],
    ["stranger-leaf.pem", "SSL_ERROR_CA_UNKNOWN"],
    ["stranger-no-root.pem", "UNABLE_TO_GET_ISSUER_CERT"],
    ["expired.pem", "SSL_CERT_EXPIRED"],
    ["not-yet-valid.pem", "SSL_CERT_EXPIRED"]
  ])("Delivery to a server with the certificate %s fails with %s and sends no request", async (certificate, code) => {
    let requests = 0
    await using target = await tlsTarget(certificate, { onConnection: (socket) => socket.on("data", () => requests++) })
    await using egress = await openEgress({ ca: [authority], resolve: async () => ["127.0.0.1"] })
    const answer = await egress.deliver({ method: "POST", url: `https://target.test:${target.port}/`, body: "secret" })
    expect(answer).toMatchObject({ status: null, errorCode: code })
    expect(requests).toBe(0)
  })

  it("Certificate for another name gives the error ERR_TLS_CERT_ALTNAME_INVALID", async () => {
    await using target = await tlsTarget("valid.pem")
    await using egress = await openEgress({ ca: [authority], resolve: async () => ["127.0.0.1"] })
    const answer = await egress.deliver({ method: "POST", url: `https://other.example:${target.port}/`, body: "x" })
    expect(answer.errorCode).toBe("ERR_TLS_CERT_ALTNAME_INVALID")
  })

  it("Certificate of an unknown authority gives the error SSL_ERROR_CA_UNKNOWN", async () => {
    await using target = await tlsTarget("valid.pem")
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: `https://127.0.0.1:${target.port}/`, body: "x" })
    expect(answer.errorCode).toBe("SSL_ERROR_CA_UNKNOWN")
  })

  it("Server without TLS gives the error ERR_SSL_WRONG_VERSION_NUMBER", async () => {
    await using egress = await openEgress()
    await using http = await httpTarget((_, response) => response.end())
    const answer = await egress.deliver({ method: "POST", url: http.url.replace("http:", "https:"), body: "x" })
    expect(answer.errorCode).toBe("ERR_SSL_WRONG_VERSION_NUMBER")
    await using banner = await tcpTarget((socket) => socket.write("220 mail.example ESMTP ready\r\n"))
    const other = await egress.deliver({ method: "POST", url: banner.url.replace("http:", "https:"), body: "x" })
    expect(other.errorCode).toBe("ERR_SSL_WRONG_VERSION_NUMBER")
  })

  it("Unsafe version of TLS gives the error ERR_SSL_WRONG_VERSION_NUMBER", async () => {
    const old = { minVersion: "TLSv1.1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const
    await using target = await tlsTarget("valid.pem", { settings: old })
    await using egress = await openEgress({ ca: [authority] })
    const answer = await egress.deliver({ method: "POST", url: `https://127.0.0.1:${target.port}/`, body: "x" })
    expect(answer.errorCode).toBe("ERR_SSL_WRONG_VERSION_NUMBER")
  })

  it.each([
    [
      "a client certificate",
      { requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" } as const,
      "TLS: ssl/tls alert handshake failure"
    ],
    ["HTTP/2", { ALPNProtocols: ["h2"] }, "TLS: tlsv1 alert no application protocol"]
  ])("Target that requires %s gives the error PROTOCOL_ERROR", async (_, settings, message) => {
    await using target = await tlsTarget("valid.pem", { settings })
    await using egress = await openEgress({ ca: [authority] })
    const answer = await egress.deliver({ method: "POST", url: `https://127.0.0.1:${target.port}/`, body: "x" })
    expect(answer).toMatchObject({ status: null, errorCode: "PROTOCOL_ERROR" })
    expect(answer.errorMessage).toBe(message)
  })

  it("Connection closed during the TLS handshake gives the error CONNECTION_RESET", async () => {
    await using target = await rawTarget((socket) => socket.end())
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url.replace("http:", "https:"), body: "x" })
    expect(answer.errorCode).toBe("CONNECTION_RESET")
  })
})

describe("HTTP errors", () => {
  it.each([
    ["not HTTP", "hello\r\n\r\n"],
    ["HTTP/2 unasked", Buffer.from("000000040000000000", "hex").toString("latin1")],
    ["a bad status line", "HTTP/1.1 two hundred\r\n\r\n"],
    ["a bad header", "HTTP/1.1 200 OK\r\nbad header\r\n\r\n"],
    ["a bad header after a length", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nbad header\r\n\r\n"],
    ["a bad length", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    [
      "length and chunks",
      "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    ],
    ["an upgrade nobody asked for", "HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"],
    ["100 Continue nobody asked for", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]
  ])("Target that answers with %s gives the error PROTOCOL_ERROR", async (_, bytes) => {
    await using target = await rawTarget((socket) => socket.end(bytes, "latin1"))
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: null, errorCode: "PROTOCOL_ERROR" })
  })

  it("Malformed chunk gives PROTOCOL_ERROR and keeps the received status", async () => {
    await using target = await rawTarget((socket) =>
      socket.end("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n")
    )
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: "PROTOCOL_ERROR" })
  })

  it("Response headers of more than 16 KiB give the error RESPONSE_TOO_LARGE", async () => {
    await using egress = await openEgress()
    for (const headers of [`x: ${"a".repeat(20_000)}`, "x: a\r\n".repeat(10_000)]) {
      await using target = await rawTarget((socket) => socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\n\r\n`))
      const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
      expect(answer).toMatchObject({ status: null, errorCode: "RESPONSE_TOO_LARGE" })
    }
  })
})

describe("Requests that are not sent", () => {
  it.each([
    ["a line break in a value", ["x-a", "one\r\nx-b: two"]],
    ["a bare line feed", ["x-a", "one\ntwo"]],
    ["a NUL", ["x-a", "one\u0000two"]],
    ["a character beyond Latin-1", ["x-a", "snow\u2603"]],
    ["a space in a name", ["x a", "one"]],
    ["a line break in a name", ["x-a\r\nx-b", "one"]],
    ["an empty name", ["", "one"]]
  ])("Request with %s in a header is not sent and gives INVALID_CHARACTER", async (_, headers) => {
    await using target = await tcpTarget(() => undefined)
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, headers, body: "x" })
    expect(answer).toMatchObject({ status: null, errorCode: "INVALID_CHARACTER" })
    expect(target.connections()).toBe(0)
  })

  it.each(["GE T", "GET\r\nx: y", "", "CONNECT"])(
    "Request with the method %j is not sent and gives INVALID_CHARACTER",
    async (method) => {
      await using target = await tcpTarget(() => undefined)
      await using egress = await openEgress()
      expect((await egress.deliver({ method, url: target.url })).errorCode).toBe("INVALID_CHARACTER")
      expect(target.connections()).toBe(0)
    }
  )

  it.each([
    ["", "MISSING_URL"],
    ["/relative", "INVALID_URL"],
    ["example.com", "INVALID_URL"],
    ["http://", "INVALID_URL"],
    ["http://exa mple.com/", "INVALID_URL"],
    ["http://example.com:99999/", "INVALID_URL"],
    ["http://256.256.256.256/", "INVALID_URL"],
    ["http://[::1%25lo]/", "INVALID_URL"],
    ["http://[::1/", "INVALID_URL"],
    ["ftp://example.com/", "INVALID_URL"],
    ["file:///etc/passwd", "INVALID_URL"],
    ["javascript:alert(1)", "INVALID_URL"],
    ["http://user@example.com/", "INVALID_URL"],
    ["http://user:secret@example.com/", "INVALID_URL"],
    ["http://:secret@example.com/", "INVALID_URL"],
    ["http://example.com@127.0.0.1/", "INVALID_URL"]
  ])("Request to the URL %j is not sent and gives %s", async (url, code) => {
    const resolve = vi.fn<() => Promise<ReadonlyArray<string>>>()
    await using egress = await openEgress({ resolve })
    const answer = await egress.deliver({ method: "GET", url })
    expect(answer).toMatchObject({ status: null, errorCode: code })
    expect(answer.errorMessage).not.toContain("secret")
    expect(resolve).not.toHaveBeenCalled()
  })
})
