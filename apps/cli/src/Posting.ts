import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import type { Unsigned } from "@tidegate/verification/Signing"
import { CliFailure, failureOf, usage } from "./Failure.ts"
import type { Schemas } from "./Gateway.ts"
import { plain, tell } from "./Output.ts"

/** Posts requests to a source, signed as its provider signs. */

const largestAnswer = 64 * 1024

/** The flags of commands that post. */
export const signingFlags = {
  secretEnv: Flag.String("secret-env").pipe(
    Flag.withDefault("TIDEGATE_SENDER_SECRET"),
    Flag.withDescription(
      "Name of the environment variable with the source's secret; the request is signed as the source's provider signs"
    )
  ),
  sign: Flag.Boolean("sign").pipe(Flag.withDefault(true), Flag.withDescription("--no-sign sends the request unsigned"))
}

export interface Sent {
  readonly method: string
  /** To be appended to the source's URL, with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Signs the request for its source. It stays unsigned if the source does not verify. */
const signed = Effect.fnUntraced(function* (source: Schemas["Source"], request: Unsigned, secretEnv: string) {
  const { auth, auth_type } = source.config
  if (auth_type === null) return { headers: {}, body: request.body }
  const { signerOf, signingSecretOf } = yield* Effect.promise(() => import("@tidegate/verification/Signing"))
  const name = signingSecretOf({ type: source.type, auth_type })
  if (name === null) return yield* usage(`requests of ${source.type} cannot be signed here: add --no-sign`)
  const secret = process.env[secretEnv]
  if (secret === undefined || secret === "") {
    return yield* usage(`${source.name} verifies its senders: put its ${name} into ${secretEnv}, or add --no-sign`)
  }
  const sign = signerOf({ type: source.type, auth_type, auth: { ...auth, [name]: secret } })
  return (
    sign?.(request) ??
    (yield* usage(`${source.type}: the secret is not valid, or the body is of a kind that it does not sign`))
  )
})

/** Whether a URL is below the source's URL: a path with `..`, or with encoded dots, could name another source. */
const isBehind = (base: string, { origin, pathname }: URL): boolean => {
  const { origin: own, pathname: path } = new URL(base)
  return origin === own && (pathname === path || pathname.startsWith(`${path}/`))
}

/** The gateway's answer, in the length that is shown. */
const answerOf = async (response: Response): Promise<string> => {
  let text = ""
  const decoder = new TextDecoder()
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += decoder.decode(part, { stream: true })
    if (text.length > largestAnswer) break
  }
  return text.slice(0, largestAnswer)
}

/** Posts the request, and prints the answer. An answer from 400 on is a failure. */
export const posted = Effect.fnUntraced(function* (
  source: Schemas["Source"],
  { body: written, headers, method, path }: Sent,
  asked: { readonly secretEnv: string; readonly sign: boolean }
) {
  const url = URL.parse(`${source.url}${path === "" || /^[/?]/.test(path) ? "" : "/"}${path}`)
  if (url === null || !isBehind(source.url, url)) return yield* usage(`${path} is no path behind ${source.url}`)
  const request = {
    method,
    url: url.href,
    headers,
    body: written,
    nowSeconds: Date.now() / 1000,
    id: `msg_${randomBytes(12).toString("hex")}`
  }
  const { body, headers: added } = asked.sign
    ? yield* signed(source, request, asked.secretEnv)
    : { body: written, headers: {} }
  const { answer, status } = yield* Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, {
        method,
        headers: { ...headers, ...added },
        body: method === "GET" || method === "HEAD" ? null : Buffer.from(body),
        redirect: "manual",
        signal
      })
      return { status: response.status, answer: await answerOf(response) }
    },
    catch: failureOf
  })
  if (status >= 400) {
    const code = status === 429 || status >= 500 ? "unavailable" : "failed"
    return yield* new CliFailure({ code, message: `${source.name} answered ${status}: ${plain(answer)}` })
  }
  return yield* tell({ status, answer, url: url.href }, `${status} ${plain(answer)}`)
})
