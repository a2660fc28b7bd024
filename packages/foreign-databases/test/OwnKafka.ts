import { Effect, type Scope } from "effect"
import { execFile, spawn } from "node:child_process"
import { createPrivateKey } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import type { KafkaTopic } from "@tidegate/connectors/Brokers"
import { loopbackOnly, makeGuard } from "../../egress/src/Guard.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { int16, int32, type KafkaCall, listOfOne, text } from "../src/KafkaFrames.ts"
import { KafkaLine } from "../src/KafkaLine.ts"
import { auth } from "./Brokering.ts"
import { ended, fixture, freePort, ownProgram, type OwnProgram } from "./OwnBroker.ts"

/** The folder of a Kafka 4: a download of Kafka, or what `kafka/pom.xml` fetches. */
const { KAFKA_HOME: home = "" } = process.env
const java = ["/usr/bin/java", "/opt/java/bin/java"].find(existsSync)
export const isInstalled = home !== "" && existsSync(join(home, "libs")) && java !== undefined

const classes = [
  "-cp",
  `${home}/libs/*`,
  "-Dorg.apache.logging.log4j.level=INFO",
  "-Xmx400m",
  "-XX:TieredStopAtLevel=1"
]

export interface Consumed {
  readonly partition: number
  readonly offset: number
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: string
}

/** Somebody else's Kafka of one broker: in the clear with a sign-in, over TLS with a sign-in, and for its owner without. */
export interface OwnKafka extends OwnProgram {
  readonly port: number
  readonly tlsPort: number
  readonly topic: (name: string, partitions: number, config?: Readonly<Record<string, string>>) => Promise<void>
  /** Writes a record for each line by Kafka's own console producer. */
  readonly produce: (topic: string, lines: ReadonlyArray<string>, codec?: string) => Promise<void>
  /** The offsets that a group has committed, by partition, as Kafka's own command shows them. */
  readonly committed: (group: string) => Promise<ReadonlyArray<number>>
  /** How many members a group has. */
  readonly members: (group: string) => Promise<number>
  /** What Kafka's own console consumer finds in a topic. */
  readonly consumed: (topic: string) => Promise<ReadonlyArray<Consumed>>
  /** Starts Kafka's own console consumer as a member of a group, until the scope closes: what it has got so far. */
  readonly member: (topic: string, group: string) => Effect.Effect<() => ReadonlyArray<Consumed>, never, Scope.Scope>
}

const run = promisify(execFile)

const createTopic = (
  name: string,
  partitions: number,
  config: Readonly<Record<string, string>>
): KafkaCall<{ readonly error: number; readonly said: string }> => {
  const settings = Object.entries(config).map(([key, value]) => Buffer.concat([text(key), text(value)]))
  return {
    key: 19,
    versions: [2, 2],
    longest: 65_536,
    body: [
      listOfOne(
        Buffer.concat([text(name), int32(partitions), int16(1), int32(0), int32(settings.length), ...settings])
      ),
      int32(10_000),
      Buffer.from([0])
    ],
    read: (values) => {
      values.int32()
      values.int32()
      values.text()
      return { error: values.int16(), said: values.optionalText() }
    }
  }
}

/** A line of the console consumer with all that it can print. */
const consumedOf = (line: string): Consumed => {
  const [, partition, offset, headers = "", key, value = ""] =
    /^Partition:(\d+)\tOffset:(\d+)\t(.*?)\t([^\t]*)\t(.*)$/.exec(line) ?? []
  const pairs = headers.split(",").map((header) => {
    const at = header.indexOf(":")
    return [header.slice(0, at), header.slice(at + 1)]
  })
  return {
    partition: Number(partition),
    offset: Number(offset),
    key: key === "null" ? null : key!,
    headers: Object.fromEntries(pairs) as Record<string, string>,
    value
  }
}

const consumedIn = (output: string): ReadonlyArray<Consumed> =>
  output
    .split("\n")
    .filter((line) => line.startsWith("Partition:"))
    .map(consumedOf)

export const ownKafka: Effect.Effect<OwnKafka, never, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* temporaryFolder
  const [port, tlsPort, ownerPort, controllerPort] = yield* Effect.all([freePort, freePort, freePort, freePort])
  const plain = `org.apache.kafka.common.security.plain.PlainLoginModule required user_${auth.username}="${auth.password}";`
  const scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
  const mechanisms = (listener: string): ReadonlyArray<string> => [
    `listener.name.${listener}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512`,
    `listener.name.${listener}.plain.sasl.jaas.config=${plain}`,
    `listener.name.${listener}.scram-sha-256.sasl.jaas.config=${scram}`,
    `listener.name.${listener}.scram-sha-512.sasl.jaas.config=${scram}`
  ]
  const pem = join(folder, "server.pem")
  const key = createPrivateKey(readFileSync(fixture("key"))).export({ type: "pkcs8", format: "pem" })
  writeFileSync(pem, `${key}${readFileSync(fixture("valid"), "utf8")}`)
  const properties = join(folder, "server.properties")
  writeFileSync(
    properties,
    [
      "process.roles=broker,controller",
      "node.id=1",
      `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
      `listeners=SIGNED://127.0.0.1:${port},SECURE://127.0.0.1:${tlsPort},OWNER://127.0.0.1:${ownerPort},CONTROLLER://127.0.0.1:${controllerPort}`,
      // The certificate is of this name.
      `advertised.listeners=SIGNED://127.0.0.1:${port},SECURE://target.test:${tlsPort},OWNER://127.0.0.1:${ownerPort}`,
      "listener.security.protocol.map=SIGNED:SASL_PLAINTEXT,SECURE:SASL_SSL,OWNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
      "controller.listener.names=CONTROLLER",
      "inter.broker.listener.name=OWNER",
      ...mechanisms("signed"),
      ...mechanisms("secure"),
      "ssl.keystore.type=PEM",
      `ssl.keystore.location=${pem}`,
      "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
      "super.users=User:ANONYMOUS;User:writer",
      `log.dirs=${join(folder, "data")}`,
      "auto.create.topics.enable=false",
      "offsets.topic.num.partitions=1",
      "offsets.topic.replication.factor=1",
      "transaction.state.log.num.partitions=1",
      "group.initial.rebalance.delay.ms=0",
      ""
    ].join("\n")
  )
  const credentials = ["256", "512"].flatMap((bits) =>
    [auth.username, "reader"].flatMap((name) => [
      "--add-scram",
      `SCRAM-SHA-${bits}=[name=${name},password=${auth.password}]`
    ])
  )
  const format = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", properties]
  yield* Effect.promise(() => run(java!, [...classes, ...format, ...credentials]))
  const broker = yield* ownProgram({
    program: java!,
    args: [...classes, "kafka.Kafka", properties],
    home: folder,
    ready: "Kafka Server started"
  })
  const guard = makeGuard({ allow: loopbackOnly })
  const owner: KafkaTopic = {
    servers: [],
    topic: "",
    mechanism: "PLAIN",
    batch: null,
    username: "",
    password: "",
    tls: false,
    connectTimeout: 30
  }
  /** The rows of Kafka's own command for groups. */
  const described = async (group: string, what: string): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
    const command = ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--describe", what]
    const args = [...classes, ...command, "--bootstrap-server", `127.0.0.1:${ownerPort}`, "--group", group]
    const { stdout } = await run(java!, args)
    return stdout
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([name]) => name === group)
  }
  const shown = ["partition", "offset", "headers", "key", "value"].flatMap((what) => [
    "--property",
    `print.${what}=true`
  ])
  const consumer = (topic: string): ReadonlyArray<string> => [
    ...classes,
    "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "--bootstrap-server",
    `127.0.0.1:${ownerPort}`,
    "--topic",
    topic,
    ...shown
  ]
  return {
    ...broker,
    port,
    tlsPort,
    topic: async (name, partitions, config = {}) => {
      const line = new KafkaLine(guard, { host: "127.0.0.1", port: ownerPort }, owner, () => undefined)
      await line.open()
      const { error, said } = await line.ask(createTopic(name, partitions, config))
      line.close()
      if (error !== 0) throw new Error(`${error}: ${said}`)
    },
    produce: async (topic, lines, codec = "none") => {
      const producer = ["org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", `127.0.0.1:${ownerPort}`]
      const running = run(java!, [...classes, ...producer, "--topic", topic, "--compression-codec", codec])
      running.child.stdin!.end(`${lines.join("\n")}\n`)
      await running
    },
    committed: async (group) =>
      (await described(group, "--offsets"))
        .toSorted((a, b) => Number(a[2]) - Number(b[2]))
        .map((row) => Number(row[3])),
    members: async (group) => (await described(group, "--members")).length,
    consumed: async (topic) => {
      const { stdout } = await run(java!, [...consumer(topic), "--from-beginning", "--timeout-ms", "5000"], {
        maxBuffer: 64 * 1024 * 1024
      })
      return consumedIn(stdout)
    },
    member: Effect.fnUntraced(function* (topic, group) {
      const child = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn(java!, [...consumer(topic), "--group", group], { stdio: ["ignore", "pipe", "ignore"], detached: true })
        ),
        ended
      )
      let said = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
      // The last line may be incomplete.
      return () => consumedIn(said.slice(0, said.lastIndexOf("\n") + 1))
    })
  }
})
