import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { Console, Effect, Option } from "effect"
import { Client, openTunnel } from "@tidegate/client/source"
import { failureOf, usage } from "../Failure.ts"
import { access, type Schemas } from "../Gateway.ts"
import { watchApp } from "./App.ts"
import { hasKeys, readKeys } from "./Keys.ts"
import { lineOf } from "./Lines.ts"
import { hint, keyHandler } from "./Pressed.ts"
import { ownName, unwired, wired } from "./Wiring.ts"
import type { Print } from "../Looker.ts"
import { routesOf, user } from "../Routes.ts"
import { colored, Json, jsonLine, plain, say, Screen } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"

/** What the command line asks for. */
interface Asked {
  readonly targets: ReadonlyArray<string>
  readonly source: ReadonlyArray<string>
  readonly create: boolean
  readonly path: string
  readonly filter: Option.Option<string>
  readonly name: Option.Option<string>
  readonly maxConnections: number
  readonly keys: boolean
  readonly healthcheck: boolean
}

/** Parses a filter rule. The gateway validates its content. */
const filterRule = (text: string) =>
  Effect.try({
    try: (): Schemas["ConnectionRule"] => {
      const filter = parseJson(text)
      if (filter.kind !== "json" || !isJsonObject(filter.value)) throw new Error()
      return { ...filter.value, type: "filter" }
    },
    catch: () => usage('--filter must be a JSON object such as {"body":{"type":"order.created"}}')
  })

/** Milliseconds that the count of waiting events may take. */
const countingMs = 3_000

/** How many events wait at a destination. The number is only shown, so a failure counts as none. */
const waitingAt = (client: Client, destinationId: string, signal: AbortSignal): Promise<number> =>
  client
    .get("/events/count", {
      params: { query: { destination_id: [destinationId], status: ["QUEUED", "SCHEDULED"] } },
      signal: AbortSignal.any([signal, AbortSignal.timeout(countingMs)])
    })
    .then(({ total }) => total)
    .catch(() => 0)

export const listening = Effect.fn(function* (asked: Asked) {
  const rules = Option.isSome(asked.filter) ? [yield* filterRule(asked.filter.value)] : []
  const path = asked.path.startsWith("/") ? asked.path : `/${asked.path}`
  const listener = Option.getOrElse(asked.name, () => `cli-${user()}`)
  const routes = yield* routesOf(asked.targets, asked.source, asked.create)
  // Checked for all sources before anything is created.
  const own = yield* Effect.forEach(routes, (route) => ownName(listener, route, asked.create))
  const wires = yield* Effect.forEach(own, (one) => wired(one, { path, rules }))
  const who = yield* access
  const isJson = yield* Json
  const { canColor } = yield* Screen
  const [good, bad] = [yield* colored("green", "#"), yield* colored("red", "#")]
  const paint = (status: number, text: string): string =>
    canColor ? (status < 400 ? good : bad).replace("#", text) : text
  // Does not wait for a slow reader of our output.
  const print: Print = (json, words) =>
    void (isJson ? process.stdout.write(`${jsonLine(json)}\n`) : process.stdout.write(`${words}\n`))

  for (const { connection, destination, source, target } of wires) {
    const wiring = {
      type: "listening",
      url: source.url,
      source_id: source.id,
      destination_id: destination.id,
      connection_id: connection.id
    }
    yield* Console.log(isJson ? jsonLine(wiring) : `${source.url} -> ${target.href.replace(/\/$/, "")}${path}`)
    if (!isJson) yield* say(`source ${plain(source.name)}, destination ${plain(destination.name)}`)
  }
  const client = new Client(who)
  let last: string | null = null
  const tunnel = async (destinationId: string, source: string, target: URL, signal: AbortSignal): Promise<void> => {
    // With several sources, each line names its source.
    const tell: Print =
      wires.length === 1 ? print : (record, words) => print({ source, ...record }, `${plain(source)}: ${words}`)
    const sayWaiting = (count: number): void => {
      if (count === 0) return
      const many = count === 1 ? "1 event waits" : `${count} events wait`
      tell({ type: "waiting", count }, `${many}: what is due arrives now`)
    }
    // Asked before the first delivery could change it.
    let waiting: Promise<number> | null = waitingAt(client, destinationId, signal)
    await waiting
    return openTunnel({
      ...who,
      destinationId,
      localUrl: target.href,
      maxParallel: Math.max(1, Math.floor(asked.maxConnections / wires.length)),
      signal,
      onEvent: (event) => {
        if (event.type === "delivered") last = event.delivery.request.event_id
        const line = lineOf(event, { at: new Date(), baseUrl: who.baseUrl, paint })
        if (line !== null) tell(line.record, line.words)
        if (event.type !== "ready") return
        void (waiting ?? waitingAt(client, destinationId, signal)).then(sayWaiting)
        waiting = null
      }
    })
  }
  return yield* untilStopped(
    Effect.tryPromise({
      try: async (signal) => {
        // If one tunnel ends, the others end, too.
        const ending = new AbortController()
        const all = AbortSignal.any([signal, ending.signal])
        const apps = new Map(wires.map(({ target }) => [target.href, target]))
        if (asked.healthcheck) for (const target of apps.values()) void watchApp(target, print, all)
        const show = (words: string): void => void process.stdout.write(`${words}\n`)
        const hasKeyboard = asked.keys && !isJson && (await hasKeys())
        const pressed = keyHandler({ client, baseUrl: who.baseUrl, last: () => last, show, signal: all })
        const releaseKeys = hasKeyboard ? readKeys(pressed) : () => undefined
        if (hasKeyboard) show(hint)
        const tunnels = wires.map(({ destination, source, target }) => tunnel(destination.id, source.name, target, all))
        await Promise.all(tunnels).finally(() => {
          ending.abort()
          releaseKeys()
        })
      },
      catch: failureOf
    }).pipe(
      Effect.onInterrupt(() =>
        Effect.forEach(wires, ({ connection }) => unwired(connection.id), { concurrency: "unbounded" })
      )
    )
  )
})
