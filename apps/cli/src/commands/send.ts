import { writeJson } from "@tidegate/json/NumberMarks"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type CliFailure, usage } from "../Failure.ts"
import { call, find, type Schemas } from "../Gateway.ts"
import { readFileAt } from "../Input.ts"
import { posted, type Sent, signingFlags } from "../Posting.ts"

/** The maximum body size of a source. */
const largestBody = 10 * 1024 * 1024

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
  ...signingFlags
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
    const method = Option.getOrElse(asked.method, () => base.method).toUpperCase()
    return yield* posted(source, { ...base, method, path, headers: { ...base.headers, ...extra } }, asked)
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
