import { userInfo } from "node:os"
import { Effect } from "effect"
import { localTarget } from "@tidegate/client/source"
import { usage } from "./Failure.ts"
import { lookUp, missing, namesIn, type Schemas } from "./Gateway.ts"

/** Which source's events go to which app of this machine, as `listen` is told. */

/** Maximum number of tunnels of one command. */
export const maxSources = 32

export const user = (): string => {
  const name = userInfo()
    .username.toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
  return name === "" ? "somebody" : name
}

const localUrl = (target: string) =>
  Effect.try({
    try: () => localTarget(/^\d{1,5}$/.test(target) ? `http://localhost:${target}` : target),
    catch: (error) => usage((error as Error).message)
  })

/** An existing source, or the name of one that has to be created. */
export type Wanted = Schemas["Source"] | string

export const nameOf = (source: Wanted): string => (typeof source === "string" ? source : source.name)

/** The sources to listen to. A misspelt one is not created, because nobody would ever post to it. */
const wantedSources = (given: ReadonlyArray<string>, create: boolean) =>
  Effect.gen(function* () {
    const names = yield* namesIn("source", given)
    const wanted = yield* Effect.forEach(names.length === 0 ? [`local-${user()}`] : names, (name) =>
      Effect.map(lookUp("source", name), (found): Wanted => found ?? name)
    )
    for (const name of wanted.filter((source) => typeof source === "string")) {
      if (name.startsWith("src_")) return yield* missing("source", name)
      if (!create) return yield* missing("source", name, "; --create makes it")
    }
    return [...new Map(wanted.map((source) => [nameOf(source), source])).values()]
  })

export interface Route {
  readonly source: Wanted
  readonly target: URL
}

/** `shop=3000`. In a URL there is a slash before such a sign. */
const pair = /^([^=/]+)=(.*)$/

/** One target for the sources of `--source`, or for each pair the target of its source. */
export const routesOf = Effect.fnUntraced(function* (
  targets: ReadonlyArray<string>,
  sources: ReadonlyArray<string>,
  create: boolean
) {
  const pairs = targets.flatMap((text) => {
    const [, source, target] = pair.exec(text) ?? []
    return source === undefined || target === undefined ? [] : [{ given: [source], target }]
  })
  if (pairs.length === 0 && targets.length > 1) {
    return yield* usage("say which source goes to which port: shop=3000 till=4000")
  }
  if (pairs.length > 0 && (pairs.length < targets.length || sources.length > 0)) {
    return yield* usage("write either source=port for each app, or one port and --source")
  }
  const groups = pairs.length > 0 ? pairs : targets.map((target) => ({ given: sources, target }))
  const routes = yield* Effect.forEach(groups, ({ given, target }) =>
    Effect.gen(function* () {
      const url = yield* localUrl(target)
      return (yield* wantedSources(given, create)).map((source): Route => ({ source, target: url }))
    })
  )
  const all = routes.flat()
  if (all.length > maxSources) return yield* usage(`more than ${maxSources} sources cannot be listened to at once`)
  const names = all.map(({ source }) => nameOf(source))
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) {
    return yield* usage(`the source ${twice} is there twice: a listener delivers its events to one app`)
  }
  return all
})
