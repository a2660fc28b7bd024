import { Schema } from "effect"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { maskSecret } from "@tidegate/redaction/Masking"
import { type Answer, connector, judgeStatus, type OutboundRequest } from "./Connector.ts"
import { forward } from "./HttpDelivery.ts"
import { forwarding, forwardsPath, pacing, Path, setting } from "./Settings.ts"

/** The URL of every mock. No host has this name: the gateway itself answers. */
export const mockUrl = "https://mock.invalid/"

const MockPath = Path.annotate({
  description: "What the mock is called with; `/status/{code}` makes it answer that"
})

/** A target that always works: it echoes the request, for experiments. */
export const mockApi = connector({
  type: "MOCK_API",
  name: "Mock",
  description: "Delivers to nobody: it answers 200, and echoes.",
  settings: { path: setting(MockPath, "/"), ...forwarding, ...pacing },
  none: {
    url: Schema.NullOr(Schema.Literal(mockUrl)).annotate({
      message: "is fixed for MOCK_API destinations; use config.path"
    }),
    max_concurrency: Schema.Null.annotate({
      message: "has no effect on MOCK_API destinations, which answer at once; use config.rate_limit"
    })
  },
  auths: ["NO_AUTH", "SERVICE_SIGNATURE", "CUSTOM_HEADER"],
  // The echo is stored with its attempt, and is visible to all who may read the attempt.
  credentials: "mask",
  carriesPath: forwardsPath,
  shown: () => ({ url: mockUrl }),
  example: { name: "mock", type: "MOCK_API" },
  open: (settings, { headers, signing }) => ({
    kind: "local",
    prepare: forward(
      { ...settings, url: mockUrl + settings.path.slice(1) },
      {
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskSecret(value)])),
        signing
      }
    ),
    answer,
    judge: judgeStatus
  })
})

/**
 * 200 and an echo of the request; a path that ends in `/status/{code}` answers with that code. The echo is cut at the capture limit of
 * answers, between characters, and no more of the body is read than the limit requires.
 */
export const answer = (request: Omit<OutboundRequest, "shownUrl">): Answer => {
  const { pathname: path, search } = new URL(request.url)
  const code = /\/status\/([2-5]\d\d)$/.exec(path)?.[1]
  // A repeated header is a list. A header may be named __proto__.
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

/** At most this many bytes of UTF-8, cut between characters. */
const wholeCharacters = (text: Buffer, bytes: number): Buffer => {
  let end = Math.min(bytes, text.length)
  while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end--
  return text.subarray(0, end)
}
