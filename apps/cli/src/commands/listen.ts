import { Argument, Command, Flag } from "effect/cli"
import { lazily } from "../Lazily.ts"
import { maxSources } from "../Routes.ts"

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
    Flag.withDescription("Names or ids of sources, separated by commas (default: local-<user>)")
  ),
  create: Flag.Boolean("create").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Creates the sources that do not exist, and your destination and connection for each")
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
  keys: Flag.Boolean("keys").pipe(Flag.withDefault(true), Flag.withDescription("--no-keys leaves the keyboard alone")),
  healthcheck: Flag.Boolean("healthcheck").pipe(
    Flag.withDefault(true),
    Flag.withDescription("--no-healthcheck does not check whether your app is reachable")
  )
}

export const listen = Command.make(
  "listen",
  flags,
  lazily(async () => (await import("../listen/Listening.ts")).listening)
).pipe(
  Command.withDescription("Delivers a source's events to an app on this machine, until Ctrl-C"),
  Command.withExamples([
    {
      command: "tidegate listen 3000 --create",
      description: "Makes a source of your own, and delivers its events to http://localhost:3000"
    },
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
