/** What HTTP/1.1 itself forbids, sent to any URL. */
export interface WireCase {
  readonly name: string
  readonly parts: ReadonlyArray<string>
  /** What the server answers; null: it may as well say nothing, because there was no request. */
  readonly status: number | null
  /** Our side ends (or breaks off) after the last part. */
  readonly end?: boolean
  readonly cut?: boolean
}

/** `target` is a URL path that takes a POST with `headers` and a JSON body. */
export const wireCases = (target: string, headers: string): ReadonlyArray<WireCase> => {
  const body = '{"name":"over-the-wire"}'
  const post = (more: string, content = body, version = "HTTP/1.1"): string =>
    `POST ${target} ${version}\r\nHost: gateway.test\r\nConnection: close\r\n${headers}${more}\r\n${content}`
  const length = `Content-Length: ${body.length}\r\n`
  const chunked = "Transfer-Encoding: chunked\r\n"
  const one = (name: string, text: string, status: number | null = 400, more: Partial<WireCase> = {}): WireCase => ({
    name,
    parts: [text],
    status,
    ...more
  })
  return [
    // Request lines.
    one("garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    one("a line of nothing but text", "hello\r\n\r\n"),
    one("an invalid version", post(length, body, "HTTP/1.x")),
    one("a future version", post(length, body, "HTTP/3.0")),
    one("another protocol", post(length, body, "SIP/2.0")),
    one("an unknown method", `BREW ${target} HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a method in small letters", `post ${target} HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("no path", "POST  HTTP/1.1\r\nHost: x\r\n\r\n"),
    one("a space in the path", `POST ${target} x HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a NUL in the path", `POST ${target}\0 HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a control byte in the path", `POST ${target}\x01 HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a DEL in the path", `POST ${target}\x7f HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("non-ASCII bytes in the path", `POST ${target}/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a tab before the path", `POST\t${target} HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("a bare CR in the request line", `POST ${target}\r HTTP/1.1\r\nHost: x\r\n\r\n`),
    one("no Host", `POST ${target} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`),
    one("two Hosts", post(`Host: another.test\r\n${length}`)),
    one("the same Host twice", post(`host: gateway.test\r\n${length}`)),
    one("a Host with a space", `POST ${target} HTTP/1.1\r\nHost: a b\r\nContent-Length: 0\r\n\r\n`),
    one("a Host with a path", `POST ${target} HTTP/1.1\r\nHost: a/b\r\nContent-Length: 0\r\n\r\n`),
    one("a line of HTTP/0.9", `GET ${target}\r\n\r\n`),
    one("HTTP/0.9, written out", post(length, body, "HTTP/0.9")),
    one("HTTP/2 without its preface", post(length, body, "HTTP/2.0")),
    one("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    one("RTSP", post(length, body, "RTSP/1.0")),
    one("ICE", `SOURCE ${target} ICE/1.0\r\nHost: x\r\n\r\n`),
    // Framing.
    one("two lengths that differ", post(`Content-Length: 1\r\n${length}`)),
    one("the same length twice", post(length + length)),
    one("two lengths in one header", post(`Content-Length: ${body.length}, ${body.length}\r\n`)),
    one("a length below zero", post("Content-Length: -1\r\n")),
    one("a length with a plus", post(`Content-Length: +${body.length}\r\n`)),
    one("a length that is a word", post("Content-Length: all\r\n")),
    one("a length in hexadecimal", post("Content-Length: 0x18\r\n")),
    one("an empty length", post("Content-Length:\r\n")),
    one("a length beyond 64 bits", post("Content-Length: 18446744073709551616\r\n")),
    one("a length and chunks", post(length + chunked, "0\r\n\r\n")),
    one("chunks and a length", post(chunked + length, "0\r\n\r\n")),
    one("chunks, not last", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")),
    one("chunks twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")),
    one("an unknown transfer coding", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")),
    one("chunks spelled with a control byte", post("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")),
    one("chunks with a space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")),
    one("an invalid chunk size", post(chunked, "zz\r\nx\r\n0\r\n\r\n")),
    one("a chunk size below zero", post(chunked, "-1\r\nx\r\n0\r\n\r\n")),
    one("a chunk size with 0x", post(chunked, "0x5\r\nhello\r\n0\r\n\r\n")),
    one("a chunk size beyond 64 bits", post(chunked, "fffffffffffffffff\r\nx\r\n0\r\n\r\n")),
    one("an empty chunk size", post(chunked, "\r\nx\r\n0\r\n\r\n")),
    one("a chunk that is longer than it says", post(chunked, "1\r\nxx\r\n0\r\n\r\n")),
    one("a chunk ended by LF", post(chunked, "1\nx\n0\n\n")),
    one("a control byte in a chunk extension", post(chunked, "1;a=\x01\r\nx\r\n0\r\n\r\n")),
    // Headers.
    one("a header without a colon", post(`nonsense\r\n${length}`)),
    one("a header without a name", post(`: x\r\n${length}`)),
    one("a space in a header's name", post(`x y: z\r\n${length}`)),
    one("a NUL in a header's name", post(`x\0y: z\r\n${length}`)),
    one("a NUL in a header's value", post(`x: a\0b\r\n${length}`)),
    one("a control byte in a header's value", post(`x: a\x01b\r\n${length}`)),
    one("a bare CR in a header's value", post(`x: a\rb: c\r\n${length}`)),
    one("a folded header", post(`x: a\r\n b\r\n${length}`)),
    one("a space before the first header", `POST ${target} HTTP/1.1\r\n Host: x\r\n\r\n`),
    one("lines ended by LF", `POST ${target} HTTP/1.1\nHost: x\n${headers.replaceAll("\r", "")}\n`),
    one("headers of 40 KiB", post(`x-long: ${"x".repeat(40 * 1024)}\r\n${length}`), 431),
    one(
      "a thousand headers too long",
      post(Array.from({ length: 1_000 }, (_, i) => `x-${i}: ${"y".repeat(40)}\r\n`).join("")),
      431
    ),
    one("257 headers", post(`${"a:\r\n".repeat(254)}${length}`), 431),
    one("a thousand trailers too long", post(chunked, `0\r\n${"a:bcdefgh\r\n".repeat(5_000)}\r\n`), 431),
    one("a chunk extension of 20 KB", post(chunked, `1;${"a".repeat(20_000)}\r\nx\r\n0\r\n\r\n`), 413),
    one("five thousand chunks of a byte", post(chunked, `${"1\r\nx\r\n".repeat(5_000)}0\r\n\r\n`), 413),
    one("a path of 40 KiB", `POST ${target}/${"x".repeat(40 * 1024)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431),
    one("an unknown expectation", post(`Expect: 200-maybe\r\n${length}`), 417),
    one("a tunnel", `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`, null),
    // Endings.
    one("an end within the request line", `POST ${target}`, null, { end: true }),
    one("an end within the headers", `POST ${target} HTTP/1.1\r\nHost: x\r\nX-Un`, null, { end: true }),
    one("an end within the body", post("Content-Length: 1000\r\n"), null, { end: true }),
    one("an end within a chunk", post(chunked, '400\r\n{"name":'), null, { end: true }),
    one("no last chunk", post(chunked, `${body.length.toString(16)}\r\n${body}\r\n`), null, { end: true }),
    one("broken off within the body", post("Content-Length: 1000\r\n"), null, { cut: true }),
    one("broken off within a chunk", post(chunked, '400\r\n{"name":'), null, { cut: true })
  ]
}
