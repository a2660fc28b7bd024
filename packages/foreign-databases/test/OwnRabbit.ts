import { connect } from "amqplib"
import { Effect, type Scope } from "effect"
import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { auth } from "./Brokering.ts"
import { ended, fixture, freePort, ownProgram, type OwnProgram } from "./OwnBroker.ts"

/** The program of a real RabbitMQ, where one is installed (`apt-get install rabbitmq-server`). */
export const program = ["/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/homebrew/sbin/rabbitmq-server"].find(existsSync)

/** Users, and queues with their bindings to the exchange `orders`, in the virtual host `shop`. */
const definitions = {
  users: ["writer", "reader"].map((name) => ({ name, password: auth.password, tags: "" })),
  vhosts: [{ name: "shop" }, { name: "closed" }],
  permissions: [
    { user: "writer", vhost: "shop", configure: "", write: ".*", read: ".*" },
    { user: "reader", vhost: "shop", configure: "", write: "", read: ".*" }
  ],
  exchanges: [{ name: "orders", vhost: "shop", type: "topic", durable: true, auto_delete: false, arguments: {} }],
  queues: [
    { name: "kept", vhost: "shop", durable: true, auto_delete: false, arguments: {} },
    ...["classic", "quorum"].map((type) => ({
      name: `read ${type}`,
      vhost: "shop",
      durable: true,
      auto_delete: false,
      arguments: { "x-queue-type": type, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead" }
    })),
    { name: "dead", vhost: "shop", durable: true, auto_delete: false, arguments: {} },
    {
      name: "full",
      vhost: "shop",
      durable: true,
      auto_delete: false,
      arguments: { "x-max-length": 1, "x-overflow": "reject-publish" }
    }
  ],
  bindings: [
    {
      source: "orders",
      vhost: "shop",
      destination: "kept",
      destination_type: "queue",
      routing_key: "order.*",
      arguments: {}
    },
    {
      source: "orders",
      vhost: "shop",
      destination: "full",
      destination_type: "queue",
      routing_key: "full",
      arguments: {}
    }
  ]
}

/** Somebody else's RabbitMQ, which speaks TLS too. */
export interface OwnRabbit extends OwnProgram {
  readonly port: number
  readonly tlsPort: number
  /** Publishes persistent messages to a queue, and returns when the broker has confirmed all of them. */
  readonly published: (
    queue: string,
    messages: ReadonlyArray<{ readonly id: string; readonly body: Buffer }>
  ) => Promise<void>
  /** Takes what the queue holds. */
  readonly taken: (queue: string) => Promise<ReadonlyArray<{ readonly id: string; readonly message: Taken }>>
}
interface Taken {
  readonly content: Buffer
  readonly fields: { readonly routingKey: string }
  readonly properties: Readonly<Record<string, unknown>>
}

export const ownRabbit: Effect.Effect<OwnRabbit, never, Scope.Scope> = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const [port, tlsPort, between, names] = yield* Effect.all([freePort, freePort, freePort, freePort])
  writeFileSync(join(home, "definitions.json"), JSON.stringify(definitions))
  writeFileSync(join(home, "plugins"), "[].")
  writeFileSync(
    join(home, "rabbitmq.conf"),
    [
      `listeners.tcp.1 = 127.0.0.1:${port}`,
      `listeners.ssl.1 = 127.0.0.1:${tlsPort}`,
      `ssl_options.cacertfile = ${fixture("authority")}`,
      `ssl_options.certfile = ${fixture("valid")}`,
      `ssl_options.keyfile = ${fixture("key")}`,
      "ssl_options.verify = verify_none",
      `load_definitions = ${join(home, "definitions.json")}`,
      ""
    ].join("\n")
  )
  const env = {
    PATH: process.env["PATH"],
    HOME: home,
    RABBITMQ_NODENAME: `tidegate${port}@localhost`,
    RABBITMQ_DIST_PORT: String(between),
    ERL_EPMD_PORT: String(names),
    ERL_EPMD_ADDRESS: "127.0.0.1",
    RABBITMQ_MNESIA_BASE: join(home, "data"),
    RABBITMQ_LOG_BASE: join(home, "log"),
    RABBITMQ_LOGS: "-",
    RABBITMQ_CONFIG_FILE: join(home, "rabbitmq"),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(home, "plugins"),
    RABBITMQ_CONF_ENV_FILE: "/dev/null",
    RABBITMQ_PID_FILE: join(home, "pid"),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "+S 1:1 +sbwt none"
  }
  // The node's register of names goes on by itself. It belongs to this broker alone.
  const registry = spawn("epmd", ["-port", String(names)], { cwd: home, env, stdio: "ignore", detached: true })
  yield* Effect.addFinalizer(() => ended(registry))
  const broker = yield* ownProgram({ program: program!, args: [], home, env, ready: "Server startup complete" })
  return {
    port,
    tlsPort,
    ...broker,
    published: async (queue, messages) => {
      const connection = await connect({ port, hostname: "127.0.0.1", ...auth, vhost: "shop" })
      const channel = await connection.createConfirmChannel()
      for (const { body, id } of messages) {
        channel.sendToQueue(queue, body, { messageId: id, contentType: "application/json", persistent: true })
      }
      await channel.waitForConfirms()
      await connection.close()
    },
    taken: async (queue) => {
      const connection = await connect({ port, hostname: "127.0.0.1", ...auth, vhost: "shop" })
      const channel = await connection.createChannel()
      const all: Array<{ readonly id: string; readonly message: Taken }> = []
      for (;;) {
        const message = await channel.get(queue, { noAck: true })
        if (message === false) break
        all.push({ id: String(message.properties.messageId), message: message as unknown as Taken })
      }
      await connection.close()
      return all
    }
  }
})
