import { Context, Data, type Effect, type Scope } from "effect"
import type { SessionFailure } from "./Failure.ts"
import type { ServerSignIn } from "./Server.ts"

/** An exchange of a broker that speaks AMQP 0-9-1. */
export interface AmqpExchange extends ServerSignIn {
  readonly vhost: string
  readonly exchange: string
}

export interface AmqpMessage {
  /** At most 255 bytes each, like the names of `headers`. The values of `headers` may be longer. */
  readonly id: string
  readonly routingKey: string
  readonly contentType: string | null
  readonly contentEncoding: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Whether the message survives a restart of the broker, if its queue is durable. */
  readonly persistent: boolean
  /** Whether a message that no queue gets is a failure. */
  readonly mandatory: boolean
  readonly body: Uint8Array
}

/** A database of a Redis server. */
export interface RedisDatabase extends ServerSignIn {
  readonly database: number
}

/** An entry of a stream. */
export interface RedisEntry {
  /** The key of the stream. */
  readonly stream: string
  /** About how many entries the stream keeps; null: all. */
  readonly maxLength: number | null
  /** Names and values in their order. */
  readonly fields: ReadonlyArray<readonly [name: string, value: string | Uint8Array]>
}

/** A NATS server with JetStream. */
export interface NatsServer extends ServerSignIn {
  /** Whether TLS begins before the server's greeting. */
  readonly tlsFirst: boolean
  /** Empty: not signed in by it. */
  readonly token: string
  readonly seed: string
  readonly jwt: string
}

export interface NatsMessage {
  /** Without spaces and control characters. */
  readonly subject: string
  /** Names and values are printable ASCII. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export type KafkaMechanism = "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512"

/** A topic of a Kafka cluster. */
export interface KafkaPlace extends Omit<ServerSignIn, "host" | "port"> {
  /** Where the cluster is asked for its brokers. */
  readonly servers: ReadonlyArray<{ readonly host: string; readonly port: number }>
  readonly topic: string
  /** How the user signs in, if there is a user name. */
  readonly mechanism: KafkaMechanism
}

/** A topic to which records are published. */
export interface KafkaTopic extends KafkaPlace {
  /**
   * The limits of the records of one partition in a request, and how long (ms) the first record waits for others. Null: a request contains the
   * records that come while another request is under way.
   */
  readonly batch: { readonly maxCount: number; readonly maxBytes: number; readonly maxWaitMs: number } | null
}

export interface KafkaRecord {
  /** Records with the same key are in one partition; null: in any. */
  readonly key: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly value: Uint8Array
}

/** A mail server. */
export interface SmtpServer extends ServerSignIn {
  /** Whether TLS begins before the server's greeting. */
  readonly tlsFirst: boolean
}

export interface SmtpLetter {
  /** Addresses without brackets, spaces and control characters. */
  readonly from: string
  readonly to: ReadonlyArray<string>
  /** The letter with its headers; every line ends with CRLF. */
  readonly content: Uint8Array
}

/** A database of a MySQL or MariaDB server. */
export interface MysqlTable extends ServerSignIn {
  readonly database: string
  readonly table: string
  /** The columns that each row fills, in this order. */
  readonly columns: ReadonlyArray<string>
  /** A column that gets the server's time. Null: no column. */
  readonly timed: string | null
  /** Whether an existing row counts as inserted. */
  readonly ignoresDuplicates: boolean
}

/** Rows that are inserted with one statement: all or none, if the table supports transactions. */
export interface MysqlRows {
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}

/** The protocols, each with the settings of its connection and the type of its messages. A new protocol is one line here. */
export interface BrokerProtocols {
  readonly amqp: { readonly place: AmqpExchange; readonly message: AmqpMessage }
  readonly redis: { readonly place: RedisDatabase; readonly message: RedisEntry }
  readonly mysql: { readonly place: MysqlTable; readonly message: MysqlRows }
  readonly smtp: { readonly place: SmtpServer; readonly message: SmtpLetter }
  readonly nats: { readonly place: NatsServer; readonly message: NatsMessage }
  readonly kafka: { readonly place: KafkaTopic; readonly message: KafkaRecord }
}

export type BrokerProtocol = keyof BrokerProtocols

/** A broker has understood and refused a message or the sign-in. */
export class BrokerRefusal extends Data.TaggedError("BrokerRefusal")<{
  /** The code of the protocol, such as `404` or `WRONGPASS`. */
  readonly code: string
  /** The broker's message: untrusted text. */
  readonly said: string
  /** Whether the refusal may be about another message that was under way over the same connection. */
  readonly shared: boolean
}> {}

/**
 * Publishes a message, waits for the broker's confirmation, and returns the broker's id of the message. May be interrupted at any point. `mayStart`
 * is called once there is a connection: if it returns false, nothing is sent.
 */
export type Publish<M> = (message: M, mayStart: () => boolean) => Effect.Effect<string, BrokerRefusal | SessionFailure>

/** Connects to external message brokers. */
export class Brokers extends Context.Service<
  Brokers,
  {
    /** Connects when the first message is published, and again if the broker has closed the connection. Closes its connection with the scope. */
    readonly open: <P extends BrokerProtocol>(
      protocol: P,
      place: BrokerProtocols[P]["place"]
    ) => Effect.Effect<Publish<BrokerProtocols[P]["message"]>, never, Scope.Scope>
  }
>()("@tidegate/connectors/Brokers") {}
