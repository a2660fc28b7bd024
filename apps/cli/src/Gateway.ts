import { Effect, Option } from "effect"
import { Flag, GlobalFlag } from "effect/cli"
import { Client, type components, type Json as JsonOf } from "@tidegate/client/source"
import { readJson } from "@tidegate/json/JsonText"
import { isLoopbackHost } from "@tidegate/model/LoopbackHost"
import { writeJson } from "@tidegate/json/NumberMarks"
import { readCredentials } from "./Credentials.ts"
import { CliFailure, failureOf, usage } from "./Failure.ts"
import { Json, plain, say } from "./Output.ts"
import { didYouMean } from "@tidegate/model/NearestName"

export const Url = GlobalFlag.Setting("url")({
  flag: Flag.String("url").pipe(
    Flag.optional,
    Flag.withDescription(
      "URL of the gateway (default: TIDEGATE_URL, then the gateway you signed in to, then http://localhost:8080)"
    )
  )
})

export const Team = GlobalFlag.Setting("team")({
  flag: Flag.String("team").pipe(
    Flag.optional,
    Flag.withDescription("Id of the team, tm_… (default: TIDEGATE_TEAM, then the credential's own team)")
  )
})

export const usualUrl = "http://localhost:8080"

const given = (name: string): Option.Option<string> => {
  const value = process.env[name]?.trim()
  return value === undefined || value === "" ? Option.none() : Option.some(value)
}

/** The gateway's URL without a trailing slash, so that two spellings are equal. */
export const gatewayUrl = (text: string): Effect.Effect<string, CliFailure> => {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.search !== "" || url.hash !== "") {
    return Effect.fail(usage(`${text} is no URL of a gateway: write http://… or https://…, without credentials`))
  }
  return Effect.succeed(url.href.replace(/\/+$/, ""))
}

/** The gateway's address, and the caller's credentials. */
export interface Access {
  readonly baseUrl: string
  readonly key: string
  readonly team?: string
  readonly json: JsonOf
}

/** Keeps all digits of numbers in senders' data, when it is shown and when it is sent again. */
const json: JsonOf = { parse: readJson, stringify: writeJson }

/** The flags, else the environment variables. */
export const wanted = Effect.gen(function* () {
  return {
    url: Option.orElse(yield* Url, () => given("TIDEGATE_URL")),
    team: Option.orElse(yield* Team, () => given("TIDEGATE_TEAM"))
  }
})

let hasWarned = false

/** Warns once, because a key that is sent unencrypted can be read on the network. */
export const warned = Effect.fnUntraced(function* (baseUrl: string) {
  const { hostname, protocol } = new URL(baseUrl)
  if (hasWarned || protocol === "https:" || isLoopbackHost(hostname) || (yield* Json)) return
  hasWarned = true
  yield* say(plain(`warning: ${baseUrl} is not encrypted: whoever is on the way can read the API key`))
})

/** The requested URL, and the key from the environment or from the login at that URL. */
export const access: Effect.Effect<
  Access,
  CliFailure,
  GlobalFlag.Setting.Identifier<"url" | "team" | "json">
> = Effect.gen(function* () {
  const { team: askedTeam, url: asked } = yield* wanted
  const key = given("TIDEGATE_API_KEY")
  const stored = Option.isSome(key) && Option.isSome(asked) ? null : yield* readCredentials
  const baseUrl = yield* gatewayUrl(Option.getOrElse(asked, () => stored?.url ?? usualUrl))
  if (Option.isNone(key) && stored?.url !== baseUrl) {
    // The key of one gateway is never sent to another.
    return yield* new CliFailure({
      code: "forbidden",
      message: `no credentials for ${baseUrl}: tidegate login --url ${baseUrl}, or set TIDEGATE_API_KEY`
    })
  }
  yield* warned(baseUrl)
  // The stored team belongs to the stored key.
  const team = Option.getOrUndefined(askedTeam) ?? (Option.isSome(key) ? undefined : stored?.team)
  return { baseUrl, json, key: Option.getOrElse(key, () => stored!.key), ...(team === undefined ? {} : { team }) }
})

/** Calls the API. */
export const call = <A>(run: (client: Client, signal: AbortSignal) => Promise<A>) =>
  Effect.flatMap(access, (who) =>
    Effect.tryPromise({ try: (signal) => run(new Client(who), signal), catch: failureOf })
  )

export type Schemas = components["schemas"]

const kinds = {
  source: { prefix: "src_", path: "/sources" },
  destination: { prefix: "des_", path: "/destinations" },
  connection: { prefix: "web_", path: "/connections" },
  workflow: { prefix: "wfl_", path: "/workflows" }
} as const

interface Kinds {
  readonly source: Schemas["Source"]
  readonly destination: Schemas["Destination"]
  readonly connection: Schemas["Connection"]
  readonly workflow: Schemas["Workflow"]
}

/** The resource with this name or id; null if there is none. */
export const lookUp = <Kind extends keyof Kinds>(kind: Kind, nameOrId: string) =>
  call(async (client, signal): Promise<Kinds[Kind] | null> => {
    const { path, prefix } = kinds[kind]
    const query = nameOrId.startsWith(prefix) ? { id: [nameOrId] } : { name: nameOrId }
    const { models } = await client.get(path, { params: { query }, signal })
    return (models[0] as Kinds[Kind] | undefined) ?? null
  })

const maxNames = 255

/** The failure for an unknown name, with the most similar existing name. */
export const missing = (kind: keyof Kinds, nameOrId: string, further = "") =>
  Effect.flatMap(
    call(async (client, signal) => {
      if (nameOrId.startsWith(kinds[kind].prefix)) return []
      const { models } = await client.get(kinds[kind].path, { params: { query: { limit: maxNames } }, signal })
      return (models as ReadonlyArray<Kinds[typeof kind]>).map(({ name }) => name)
    }),
    (names) =>
      Effect.fail(
        new CliFailure({
          code: "missing",
          message: plain(`there is no ${kind} ${nameOrId}${didYouMean(nameOrId, names)}${further}`)
        })
      )
  )

export const find = <Kind extends keyof Kinds>(kind: Kind, nameOrId: string) =>
  Effect.flatMap(lookUp(kind, nameOrId), (found) => (found === null ? missing(kind, nameOrId) : Effect.succeed(found)))

/**
 * The names in a flag, which may be repeated and may contain several names, separated by commas. Names may contain commas: an existing name
 * that matches the whole text takes precedence.
 */
export const namesIn = (kind: keyof Kinds, given: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(given, (text) =>
      text.includes(",")
        ? Effect.map(lookUp(kind, text), (whole) => (whole === null ? text.split(",") : [text]))
        : Effect.succeed([text])
    ),
    (names) =>
      names
        .flat()
        .map((name) => name.trim())
        .filter((name) => name !== "")
  )

/** The ids of the resources that a flag names. */
export const idsOf = (kind: keyof Kinds, given: ReadonlyArray<string>) =>
  Effect.flatMap(namesIn(kind, given), (names) =>
    Effect.forEach(names, (name) =>
      name.startsWith(kinds[kind].prefix) ? Effect.succeed(name) : Effect.map(find(kind, name), ({ id }) => id)
    )
  )

/** Maximum number of ids in one call. */
const maxIds = 50

/** The names of these ids. A deleted resource has none. */
export const namesAt = async (
  client: Client,
  kind: keyof Kinds,
  ids: Iterable<string>,
  signal: AbortSignal
): Promise<ReadonlyMap<string, string>> => {
  const wanted = [...new Set(ids)]
  const names = new Map<string, string>()
  for (let from = 0; from < wanted.length; from += maxIds) {
    const query = { id: wanted.slice(from, from + maxIds), limit: maxIds }
    const { models } = await client.get(kinds[kind].path, { params: { query }, signal })
    for (const { id, name } of models as ReadonlyArray<Kinds[typeof kind]>) names.set(id, name)
  }
  return names
}

export const namesOf = (kind: keyof Kinds, ids: Iterable<string>) =>
  call((client, signal) => namesAt(client, kind, ids, signal))
