import { writeJson } from "@tidegate/json/NumberMarks"
import { randomBytes } from "node:crypto"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Signed, signerOf, signingSecretOf, type Unsigned } from "@tidegate/verification/Signing"
import { CliFailure, failureOf, usage } from "../Failure.ts"
import { call, find, type Schemas } from "../Gateway.ts"
import { readFileAt } from "../Input.ts"
import { plain, tell } from "../Output.ts"

/** The maximum body size of a source. */
const largestBody = 10 * 1024 * 1024
const largestAnswer = 64 * 1024

const flags = {
  source: Argument.String("source").pipe(Argument.withDescription("Name or id of the source")),
  file: Argument.String("file").pipe(
    Argument.optional,
    Argument.withDescription("File to send; - or no file reads standard input")
  ),
  fixture: Flag.String("fixture").pipe(
    Flag.optional,
    Flag.withDescription("Id of a fixture to send instead of a file, fix_…")
  ),
  data: Flag.String("data").pipe(
    Flag.withAlias("d"),
    Flag.optional,
    Flag.withDescription("Text to send instead of a file")
  ),
  method: Flag.String("method").pipe(
    Flag.withAlias("X"),
    Flag.optional,
    Flag.withDescription("HTTP method (default: POST)")
  ),
  path: Flag.String("path").pipe(
    Flag.withDefault(""),
    Flag.withDescription("Path and query to append to the source's URL: /orders?a=1")
  ),
  header: Flag.String("header").pipe(
    Flag.withAlias("H"),
    Flag.atMost(100),
    Flag.withDescription('Header, as "name: value"; can be repeated')
  ),
  secretEnv: Flag.String("secret-env").pipe(
    Flag.withDefault("TIDEGATE_SENDER_SECRET"),
    Flag.withDescription(
      "Name of the environment variable with the source's secret; the request is signed as the source's provider signs"
    )
  ),
  sign: Flag.Boolean("sign").pipe(Flag.withDefault(true), Flag.withDescription("--no-sign sends the request unsigned"))
}

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array
}

const parsedHeader = (text: string): Effect.Effect<readonly [string, string], CliFailure> => {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([\t\x20-\x7e\x80-\xff]*)$/.exec(text) ?? []
  return name === undefined || value === undefined
    ? Effect.fail(usage(`"${text}" is not a header: write "name: value"`))
    : Effect.succeed([name.toLowerCase(), value.trimEnd()])
}

const bytesOf = ({ body, encoding }: Schemas["RequestData"]): Uint8Array => {
  if (encoding === "json") return Buffer.from(writeJson(body), "utf8")
  return Buffer.from(typeof body === "string" ? body : "", encoding === "base64" ? "base64" : "utf8")
}

/** Headers of the connection by which a fixture arrived, or of its signature: these are created anew. */
const made = /^(host|content-length|connection|transfer-encoding|accept-encoding|.*signature.*|authorization)$/

const fromFixture = (id: string) =>
  Effect.flatMap(
    call((client, signal) => client.get("/request-fixtures/{id}", { params: { path: { id } }, signal })),
    ({ snapshot }): Effect.Effect<Sent, CliFailure> => {
      if (snapshot === undefined || snapshot.is_large_payload)
        return Effect.fail(usage(`${id} has no body that can be sent`))
      const headers = Object.entries(snapshot.headers).flatMap(([name, value]) =>
        made.test(name) || value === "[PRESENTED]"
          ? []
          : [[name, typeof value === "string" ? value : value.join(", ")] as const]
      )
      const query = snapshot.query === "" ? "" : `?${snapshot.query}`
      return Effect.succeed({
        method: snapshot.method,
        path: `${snapshot.path}${query}`,
        headers: Object.fromEntries(headers),
        body: bytesOf(snapshot)
      })
    }
  )

/** Signs the request for its source. It stays unsigned if the source does not verify. */
const signed = (
  source: Schemas["Source"],
  request: Unsigned,
  secret: string | undefined
): Effect.Effect<Signed, CliFailure> => {
  const { auth, auth_type } = source.config
  const unsigned = { headers: {}, body: request.body }
  if (auth_type === null) return Effect.succeed(unsigned)
  const name = signingSecretOf({ type: source.type, auth_type })
  if (name === null) return Effect.fail(usage(`requests of ${source.type} cannot be signed here: add --no-sign`))
  if (secret === undefined) {
    return Effect.fail(
      usage(`${source.name} verifies its senders: put its ${name} into TIDEGATE_SENDER_SECRET, or add --no-sign`)
    )
  }
  const sign = signerOf({ type: source.type, auth_type, auth: { ...auth, [name]: secret } })
  const made = sign?.(request) ?? null
  return made === null
    ? Effect.fail(usage(`${source.type}: the secret is not valid, or the body is not a JSON object`))
    : Effect.succeed(made)
}

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

export const send = Command.make(
  "send",
  flags,
  Effect.fn(function* (asked) {
    const given = [asked.file, asked.fixture, asked.data].filter(Option.isSome).length
    if (given > 1) return yield* usage("give one of a file, --fixture and --data")
    const source = yield* find("source", asked.source)
    const extra = Object.fromEntries(yield* Effect.forEach(asked.header, parsedHeader))
    const base: Sent = Option.isSome(asked.fixture)
      ? yield* fromFixture(asked.fixture.value)
      : {
          method: "POST",
          path: "",
          headers: { "content-type": "application/json" },
          body: Option.isSome(asked.data)
            ? Buffer.from(asked.data.value, "utf8")
            : yield* readFileAt(
                Option.getOrElse(asked.file, () => "-"),
                largestBody
              )
        }
    const path = asked.path === "" ? base.path : asked.path
    const url = URL.parse(`${source.url}${path === "" || /^[/?]/.test(path) ? "" : "/"}${path}`)
    if (url === null || !isBehind(source.url, url)) return yield* usage(`${path} is no path behind ${source.url}`)
    const method = Option.getOrElse(asked.method, () => base.method).toUpperCase()
    const headers = { ...base.headers, ...extra }
    const request = {
      method,
      url: url.href,
      headers,
      body: base.body,
      nowSeconds: Date.now() / 1000,
      id: `msg_${randomBytes(12).toString("hex")}`
    }
    const secret = process.env[asked.secretEnv]
    const { body, headers: added } = asked.sign
      ? yield* signed(source, request, secret === "" ? undefined : secret)
      : { body: base.body, headers: {} }
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
).pipe(
  Command.withDescription("Posts a file, a fixture or standard input to a source, signed as its provider signs"),
  Command.withExamples([
    { command: "tidegate send stripe event.json", description: "With TIDEGATE_SENDER_SECRET=whsec_…: as Stripe would" },
    {
      command: 'tidegate send github push.json -H "x-github-event: push"',
      description: "GitHub tells the kind of event in a header"
    }
  ])
)
