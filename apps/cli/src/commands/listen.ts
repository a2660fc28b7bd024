import { isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { connect } from "node:net"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { openTunnel, type TunnelEvent } from "@tidegate/client/source"
import { failureOf, usage } from "../Failure.ts"
import { access, call, lookUp, type Schemas } from "../Gateway.ts"
import { maxSources, nameOf, type Route, routesOf, user } from "../Routes.ts"
import { colored, Json, jsonLine, plain, say, Screen } from "../Output.ts"
import { untilStopped } from "../Stopping.ts"
import { sleeping } from "../Waiting.ts"

/** Interval of the check whether the local app is reachable: while it is, and while it is not. */
const healthyMs = 15_000
const downMs = 5_000
/** Milliseconds that the clean-up at the end may take. */
const goodbyeMs = 5_000

const flags = {
  targets: Argument.String("port").pipe(
    Argument.between(1, maxSources),
    Argument.withDescription(
      "Port of your app, or its URL on this machine: 3000, http://localhost:3000/base. For several apps, a source and a port each: shop=3000 till=4000"
    )
  ),
  source: Flag.String("source").pipe(
    Flag.atMost(100),
    Flag.withMetavar("name|id"),
    Flag.withDescription("Names or ids of sources, separated by commas (default: local-<user>, which is created)")
  ),
  create: Flag.Boolean("create").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Creates the sources of --source that do not exist")
  ),
  path: Flag.String("path").pipe(
    Flag.withDefault("/"),
    Flag.withDescription("Prefix for the path that senders post to")
  ),
  filter: Flag.String("filter").pipe(
    Flag.optional,
    Flag.withMetavar("json"),
    Flag.withDescription('Delivers only events that match this filter: {"body":{"type":"order.created"}}')
  ),
  name: Flag.String("name").pipe(
    Flag.optional,
    Flag.withDescription(
      "Name of this listener (default: cli-<user>). A second listener of the same name replaces the first"
    )
  ),
  maxConnections: Flag.Int("max-connections").pipe(
    Flag.withDefault(50),
    Flag.filter(
      (count) => count >= 1 && count <= 50,
      () => "must be from 1 to 50"
    ),
    Flag.withDescription("Maximum number of concurrent deliveries to your app")
  ),
  healthcheck: Flag.Boolean("healthcheck").pipe(
    Flag.withDefault(true),
    Flag.withDescription("--no-healthcheck does not check whether your app is reachable")
  )
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

/**
 * The name of the listener's own destination and connection for the source. Existing ones are reused. A resource of another user with this
 * name is not changed into a tunnel.
 */
const ownName = (listener: string, { source, target }: Route) =>
  Effect.gen(function* () {
    const name = `${listener}-${nameOf(source)}`.slice(0, 155)
    const there = yield* lookUp("destination", name)
    if (there !== null && there.type !== "CLI") {
      return yield* usage(`the destination ${name} is there already, of type ${there.type}: say another --name`)
    }
    const wire = yield* lookUp("connection", name)
    const sourceId = typeof source === "string" ? undefined : source.id
    if (wire !== null && (wire.source?.id !== sourceId || wire.destination?.id !== there?.id)) {
      return yield* usage(`the connection ${name} is there already, and leads elsewhere: say another --name`)
    }
    return { name, source, target }
  })

/**
 * Creates the missing resources. The filter becomes a rule of the connection: the gateway applies it, so requests that do not match are
 * recorded as ignored and never reach this program.
 */
const wired = (
  { name, source, target }: Route & { readonly name: string },
  asked: { readonly path: string; readonly rules: Array<Schemas["ConnectionRule"]> }
) =>
  call(async (client, signal) => {
    const from = typeof source === "string" ? await client.put("/sources", { body: { name: source }, signal }) : source
    const config = { path: asked.path }
    const destination = await client.put("/destinations", { body: { name, type: "CLI", config } as never, signal })
    const body = { name, source_id: from.id, destination_id: destination.id, rules: asked.rules, disabled_at: null }
    const connection = await client.put("/connections", { body, signal })
    return { source: from, destination, connection, target }
  })

/**
 * Disables the connection at the end, because later events would only fail. Fails open, because the user wants to end the program, and
 * the next start enables the connection in any case.
 */
const unwired = (connectionId: string) =>
  call((client, signal) =>
    client.put("/connections/{id}/disable", {
      params: { path: { id: connectionId } },
      signal: AbortSignal.any([signal, AbortSignal.timeout(goodbyeMs)])
    })
  ).pipe(Effect.catch(() => say("the connection could not be disabled: its events fail until the next listen")))

const isThere = (target: URL): Promise<boolean> =>
  new Promise((resolve) => {
    const port = target.port === "" ? (target.protocol === "https:" ? 443 : 80) : Number(target.port)
    const socket = connect({ host: target.hostname.replace(/^\[|\]$/g, ""), port, timeout: 2_000 })
    const over = (isOpen: boolean): void => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once("connect", () => over(true))
    socket.once("error", () => over(false))
    socket.once("timeout", () => over(false))
  })

/** Reports when the app becomes reachable or unreachable. */
const watched = (target: URL, print: (event: object, words: string) => void, signal: AbortSignal) =>
  (async () => {
    for (let before: boolean | null = null; !signal.aborted;) {
      const is = await isThere(target)
      if (is !== before) {
        if (!is)
          print(
            { type: "app", reachable: false },
            `nothing listens at ${target.href} yet: events fail with 502 until your app does`
          )
        else if (before !== null) print({ type: "app", reachable: true }, `the app at ${target.href} is reachable`)
      }
      before = is
      await sleeping(is ? healthyMs : downMs, signal)
    }
  })()

/** An event of the tunnel, in words and as JSON. */
const wordsOf = (
  event: TunnelEvent,
  paint: (status: number, text: string) => string
): { readonly record: object; readonly words: string } | null => {
  switch (event.type) {
    case "connected":
      return null
    case "ready":
      return {
        record: { type: "ready", cli_id: event.cliId },
        words: "ready: events are delivered from now on (Ctrl-C to stop)"
      }
    case "disconnected": {
      const { code, reason, retryInMs } = event
      const why = reason === "" ? "" : ` (${plain(reason)})`
      return {
        record: { type: "disconnected", code, reason, retry_in_ms: Math.round(retryInMs) },
        words: `the connection is lost${why}: retrying in ${(retryInMs / 1000).toFixed(1)} s; events wait`
      }
    }
    default: {
      const { delivery, error, status, tookMs } = event
      const { attempt_number, event_id, method, path, request_id } = delivery.request
      return {
        record: {
          type: "delivered",
          event_id,
          request_id,
          attempt_number,
          method,
          path,
          status,
          error,
          took_ms: tookMs
        },
        words: `${paint(status, String(status))} ${plain(method)} ${plain(path)} ${event_id} ${tookMs} ms${error === null ? "" : ` ${plain(error)}`}`
      }
    }
  }
}

export const listen = Command.make(
  "listen",
  flags,
  Effect.fn(function* (asked) {
    const rules = Option.isSome(asked.filter) ? [yield* filterRule(asked.filter.value)] : []
    const path = asked.path.startsWith("/") ? asked.path : `/${asked.path}`
    const listener = Option.getOrElse(asked.name, () => `cli-${user()}`)
    const routes = yield* routesOf(asked.targets, asked.source, asked.create)
    // Checked for all sources before anything is created.
    const own = yield* Effect.forEach(routes, (route) => ownName(listener, route))
    const wires = yield* Effect.forEach(own, (one) => wired(one, { path, rules }))
    const who = yield* access
    const isJson = yield* Json
    const { canColor } = yield* Screen
    const [good, bad] = [yield* colored("green", "#"), yield* colored("red", "#")]
    const paint = (status: number, text: string): string =>
      canColor ? (status < 400 ? good : bad).replace("#", text) : text
    // Does not wait for a slow reader of our output.
    const print = (json: object, words: string): void =>
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
    const tunnel = (destinationId: string, source: string, target: URL, signal: AbortSignal) =>
      openTunnel({
        ...who,
        destinationId,
        localUrl: target.href,
        maxParallel: Math.max(1, Math.floor(asked.maxConnections / wires.length)),
        signal,
        onEvent: (event) => {
          const line = wordsOf(event, paint)
          if (line === null) return
          // With several sources, each line names its source.
          if (wires.length === 1) print(line.record, line.words)
          else print({ source, ...line.record }, `${plain(source)}: ${line.words}`)
        }
      })
    return yield* untilStopped(
      Effect.tryPromise({
        try: (signal) => {
          // If one tunnel ends, the others end, too.
          const ending = new AbortController()
          const all = AbortSignal.any([signal, ending.signal])
          const apps = new Map(wires.map(({ target }) => [target.href, target]))
          if (asked.healthcheck) for (const target of apps.values()) void watched(target, print, all)
          const tunnels = wires.map(({ destination, source, target }) =>
            tunnel(destination.id, source.name, target, all)
          )
          return Promise.all(tunnels).finally(() => ending.abort())
        },
        catch: failureOf
      }).pipe(
        Effect.onInterrupt(() =>
          Effect.forEach(wires, ({ connection }) => unwired(connection.id), { concurrency: "unbounded" })
        )
      )
    )
  })
).pipe(
  Command.withDescription("Delivers a source's events to an app on this machine, until Ctrl-C"),
  Command.withExamples([
    { command: "tidegate listen 3000", description: "Delivers events of your own source to http://localhost:3000" },
    {
      command: "tidegate listen 3000 --source shop,till",
      description: "Delivers the events of two existing sources"
    },
    {
      command: "tidegate listen shop=3000 till=4000",
      description: "Delivers the events of each source to an app of its own"
    },
    {
      command: `tidegate listen 3000 --source shop --path /webhooks --filter '{"body":{"type":"order.created"}}'`,
      description: "Delivers some events of a source; its other connections still get all of them"
    }
  ])
)
