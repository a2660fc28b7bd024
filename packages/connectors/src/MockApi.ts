import type { OutboundParts } from "./HttpDelivery.ts"

/** The base of every MOCK_API delivery. Nothing is sent: the answer is made here. */
export const mockBase = "https://mock.invalid"

export interface MockAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** 200 and an echo of the request; a path that ends in `/status/{code}` answers that code. */
export const answer = (request: OutboundParts): MockAnswer => {
  const path = new URL(request.url).pathname
  const code = /\/status\/([2-5]\d\d)$/.exec(path)?.[1]
  // A repeated header is a list; and one may be called __proto__.
  const headers = Object.create(null) as Record<string, string | Array<string>>
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i]!
    const value = request.headers[i + 1]!
    const known = headers[name]
    headers[name] = known === undefined ? value : [known, value].flat()
  }
  return {
    status: code === undefined ? 200 : Number(code),
    headers: { "content-type": "application/json" },
    body: Buffer.from(
      JSON.stringify({ method: request.method, path, headers, body: Buffer.from(request.body).toString("utf8") })
    )
  }
}
