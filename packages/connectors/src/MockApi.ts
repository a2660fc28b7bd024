import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import type { OutboundParts } from "./HttpDelivery.ts"

export interface MockAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** The echo was longer than `maxCapturedBytes`. */
  readonly bodyTruncated: boolean
}

/**
 * 200 and an echo of the request; a path that ends in `/status/{code}` answers that code. Of the echo there is as much as is
 * kept of any target's answer, up to the end of a character, and no more of the body is read than that takes.
 */
export const answer = (request: Omit<OutboundParts, "url"> & { readonly url: string }): MockAnswer => {
  const { pathname: path, search } = new URL(request.url)
  const code = /\/status\/([2-5]\d\d)$/.exec(path)?.[1]
  // A repeated header is a list; and one may be called __proto__.
  const headers = Object.create(null) as Record<string, string | Array<string>>
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i]!
    const value = request.headers[i + 1]!
    const known = headers[name]
    if (known === undefined) headers[name] = value
    else if (typeof known === "string") headers[name] = [known, value]
    else known.push(value)
  }
  const body = Buffer.from(request.body.buffer, request.body.byteOffset, request.body.byteLength)
  const echo = Buffer.from(
    JSON.stringify({
      method: request.method,
      path,
      query: search.slice(1),
      headers,
      body: body.toString("utf8", 0, maxCapturedBytes)
    })
  )
  const isTruncated = body.length > maxCapturedBytes || echo.length > maxCapturedBytes
  return {
    status: code === undefined ? 200 : Number(code),
    headers: { "content-type": "application/json" },
    body: isTruncated ? wholeCharacters(echo, maxCapturedBytes) : echo,
    bodyTruncated: isTruncated
  }
}

/** At most so many bytes of UTF-8, cut between characters. */
const wholeCharacters = (text: Buffer, bytes: number): Buffer => {
  let end = Math.min(bytes, text.length)
  while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end--
  return text.subarray(0, end)
}
