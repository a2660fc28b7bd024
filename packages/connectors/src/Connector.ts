import { Data, type Effect, type Schema, type Scope } from "effect"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { ClientTls } from "@tidegate/model/ClientTls"
import type { Message, MessageHead, Values } from "@tidegate/model/Message"
import type { SigningSecret } from "@tidegate/outbound-auth/DeliverySignature"
import type { DeliveryAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { BatchLimits } from "@tidegate/runtime/Batcher"
import type { Origins } from "./Origins.ts"
import {
  AnyJson,
  type Config,
  type FieldErrors,
  type NoSetting,
  type Pace,
  pacingOf,
  type Setting,
  setting,
  type Settings,
  type SettingsOf
} from "./Settings.ts"
import type { Brokers } from "./Brokers.ts"
import type { Failure, SessionFailure } from "./Failure.ts"
import type { SqlServers } from "./SqlServers.ts"

/**
 * A destination type: its settings, its kinds of authentication, and how its destinations send. All code of a type is in its
 * own file; all other code reads the table in `Connectors.ts`.
 */
export interface Connector<Own extends Settings = Settings> {
  readonly type: string
  /** The name by which people know the service, such as `Slack`. */
  readonly name: string
  /** For the API document. */
  readonly description: string
  readonly settings: Own
  /** Members of a written `config` that have no effect. They are refused instead of ignored, except for these values. */
  readonly none?: Readonly<Record<string, NoSetting>>
  /** Replaces members under alternative names by the real ones; the schemas of the alternatives are in `none`. */
  readonly aliases?: (written: Config) => Config
  /** Default pace of its destinations. If it is set, the settings of `pacingOf` are added to the type. */
  readonly pace?: Pace
  /** Errors of the settings as a whole. */
  readonly check?: (settings: SettingsOf<Own>) => FieldErrors
  /** The rows of `OutboundAuth.ts` that it supports. */
  readonly auths: ReadonlyArray<string>
  /** The origins of the APIs that it calls through `Origins`. */
  readonly origins?: ReadonlyArray<string>
  /** Default scope of tokens, if `config.auth.scope` is not written. */
  readonly scope?: string
  /** What happens to presented credentials of senders: `mask` if the sent data is kept or shown to others. */
  readonly credentials: "forward" | "mask" | "omit"
  /** How a workflow step uses the type, if the settings alone do not determine it. */
  readonly perStep?: PerStep
  /** Whether deliveries contain the path and the query of their request. Without it they do if a template names them. */
  readonly carriesPath?: (config: Config) => boolean
  /** Whether the type sends through a tunnel. Requests count their events that do so. */
  readonly isTunnel?: true
  /** Whether consumers fetch the messages. While no consumer asks, no event of such a destination is due. */
  readonly isPulled?: true
  /** The address to which the settings send the destination's credentials, if settings can change it. A changed address needs new credentials. */
  readonly leadsTo?: (settings: SettingsOf<Own>) => string
  /** Additional members of `config` on read, derived from the settings. */
  readonly shown?: (settings: SettingsOf<Own>) => Readonly<Record<string, Schema.Json>>
  /** A body that creates a destination of the type. */
  readonly example: Schema.JsonObject
  /**
   * Called once after each change of a destination and of its token, if it has one. An error thrown here fails every attempt of this
   * destination, and nothing else.
   */
  readonly open: (settings: SettingsOf<Own>, auth: OpenAuth, origins: Origins) => Sender
}

/** The additional input of a workflow step; each setting is an input, too. */
export interface PerStep {
  /** Settings that are no inputs of a step. */
  readonly without?: ReadonlyArray<string>
  /** The step's input that is sent in place of an event's body. */
  readonly payload: Setting
  /** The name of that input. */
  readonly name: string
  /** An example of that input. */
  readonly example: Schema.Json
  /** Inputs that determine where credentials are sent and how the connection is protected: a step cannot change them from the saved values. */
  readonly address?: ReadonlyArray<string>
  /** Settings that are derived from the payload. */
  readonly settings?: (payload: Schema.Json) => Config
}

/** Creates a row of the table, for any kind of settings. */
export const connector = <const Own extends Settings>(row: Connector<Own>): Connector =>
  // `open` is only called with settings that its own schemas have validated.
  ({
    ...row,
    settings: row.pace === undefined ? row.settings : { ...row.settings, ...pacingOf(row.pace) }
  }) as unknown as Connector

/** The payload input of types that send the payload itself. */
export const payloadPerStep = (description: string): PerStep => ({
  name: "payload",
  payload: setting(AnyJson.annotate({ description }), null, "must be JSON"),
  example: { id: "o_1" }
})

/** The prepared authentication of a destination's deliveries. */
export interface OpenAuth extends Pick<DeliveryAuth, "query" | "sign"> {
  /** Headers of every delivery, by lower-case name, including `authorization` with an obtained token. */
  readonly headers: Readonly<Record<string, string>>
  /** The team's active signing secrets, newest first; null if deliveries are not signed. */
  readonly signing: readonly [SigningSecret, ...ReadonlyArray<SigningSecret>] | null
  /** The settings of its `auth_type` in plain text, for values that are in no header: an account, a password. */
  readonly settings: Schema.JsonObject
}

/** The data of one attempt. */
export interface AttemptFacts {
  readonly eventId: string
  readonly requestId: string
  readonly teamId: string
  readonly sourceId: string
  readonly connectionId: string
  readonly destinationId: string
  /** The root event's id: the same for all attempts and retries, so that receivers can deduplicate. */
  readonly webhookId: string
  readonly attemptNumber: number
  readonly trigger: string
  /** Seconds until the next attempt if this one fails; null if it is the last. */
  readonly willRetryAfter: number | null
  readonly sourceName: string
  readonly connectionName: string
  readonly destinationName: string
  readonly verified: boolean
  readonly originalIp: string | null
  /** When the event was created (Unix ms). */
  readonly createdAt: number
  readonly timestampSeconds: number
  /** The message for display: presented credentials are masked. */
  readonly shown: MessageHead
  /** Equal for events that the connection delivers one after the other. At most 11 letters, digits, dashes and underscores. */
  readonly orderingKey: string | null
  /** The value of `gateway-loop`, for messages that can lead back to the gateway: see `LoopMark.ts`. Only of sessions, and where `marksMessages`. */
  readonly loop?: string
  /** The attempt is of a workflow step: it has no connection, and `eventId` is the step's, the same for all of its attempts. */
  readonly isStep?: boolean
}

export interface OutboundRequest {
  readonly method: string
  readonly url: string
  /** The URL for the record, without secrets. */
  readonly shownUrl: string
  /** Flat: name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
  /** URLs that the target is asked to fetch: nothing is sent unless each one has a public host. */
  readonly fetched?: ReadonlyArray<string>
  /** The destination's own certificate and authorities, where it has some. */
  readonly tls?: ClientTls
  /** A credential that was made for this request: it is masked in the stored answer. */
  readonly secret?: string
}

/** Why nothing is sent. There is no further attempt, because it would be refused again. Neither text holds a secret. */
export class Refusal extends Data.Class<{
  readonly code: AttemptErrorCode
  readonly message: string
  readonly method: string
  readonly shownUrl: string
}> {}

/** The answer of a target, up to the capture limit. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, Values[string] | undefined>>
  readonly body: Buffer
  readonly bodyTruncated: boolean
}

/** The meaning of an answer. */
export type Verdict = "successful" | Failure

interface Requesting {
  readonly prepare: (message: Message, facts: AttemptFacts) => OutboundRequest | Refusal
  /** Decides about a target's answer. A missing answer is a failure already. */
  readonly judge: (answer: Answer) => Verdict
}

/** Sends by HTTP. Pure: egress does the sending. */
export interface HttpSender extends Requesting {
  readonly kind: "http"
  /** Whether the sent message contains the loop mark. If the target is a broker, a source reads the mark from the message. */
  readonly marksMessages?: true
  /** How long (ms) the call of an event may take. Absent: the usual timeout, less the time that was spent on a token. */
  readonly timeoutMs?: number
  /** Sends several events with one call, each with an attempt of its own; absent: each event has its own call. Steps always have. */
  readonly batch?: BatchCalls
  /**
   * Adds parts that take time or cover the rest of the request, such as a signature; without it nothing waits. It gets all headers that are
   * sent. If it rejects, the attempt fails.
   */
  readonly complete?: (request: OutboundRequest, facts: AttemptFacts) => Promise<OutboundRequest>
}

/** The part of one event in a call of several events. `bytes`: its size, as the service counts it. */
export interface BatchPart {
  readonly text: string
  readonly bytes: number
}

/** The result of a call of several events for one of them. `body`: its part of the answer, for the record of its attempt. */
export interface PartResult {
  readonly verdict: Verdict
  readonly body: Buffer
}

/** Calls that have parts of several events. Pure. */
export interface BatchCalls {
  /** Method and URL for the record of an attempt that is in no call yet, without secrets. */
  readonly method: string
  readonly shownUrl: string
  readonly limits: BatchLimits
  /** Null: this event cannot be part of a call of several events, so it gets a call of its own. */
  readonly part: (message: Message, facts: AttemptFacts) => BatchPart | Refusal | null
  /** Makes a call of these parts, which belong to these attempts. The results are found by the index of the part. */
  readonly call: (parts: ReadonlyArray<BatchPart>, facts: ReadonlyArray<AttemptFacts>) => OutboundRequest
  /** Takes the place of the sender's own `complete` for these calls. */
  readonly complete?: NonNullable<HttpSender["complete"]>
  /**
   * Decides about each of `count` parts. Null: the service refused the whole call because of its content, so each part has to be sent alone to find
   * the one that is wrong. With one part, the result is never null.
   */
  readonly judge: (answer: Answer, count: number) => ReadonlyArray<PartResult> | null
}

/** Sends nothing and answers itself. Pure and fast, because it runs on the shared event loop. */
export interface LocalSender extends Requesting {
  readonly kind: "local"
  readonly answer: (request: OutboundRequest) => Answer
}

export interface Session {
  /**
   * Sends one message; several may run at once. It may be interrupted at any point, and is interrupted at its timeout. `mayStart` is called
   * just before the message is sent: false ends the send as `cancelled`.
   */
  readonly send: (
    message: Message,
    facts: AttemptFacts,
    mayStart: () => boolean
  ) => Effect.Effect<Answer, SessionFailure>
}

/**
 * Sends over a connection that stays open. The first delivery opens it, all deliveries share it, and it closes with its scope: when it
 * is idle or broken, when the settings change, and when the destination's actor ends.
 */
export interface SessionSender {
  readonly kind: "session"
  /** Method and URL for the record of an attempt, without secrets. */
  readonly method: string
  readonly shownUrl: string
  /** The maximum number of sends at once, whatever the target accepts; null: as many as it takes without slowing down. */
  readonly atOnce: number | null
  readonly connect: Effect.Effect<Session, SessionFailure, Scope.Scope | SessionServices>
}

/** The services that sessions need to reach their servers. */
export type SessionServices = Brokers | SqlServers

/**
 * Sends to a program that keeps a tunnel open and calls its own target. While there is no tunnel, nothing is sent: the
 * destination's actor waits for it. Pure.
 */
export interface TunnelSender extends Requesting {
  readonly kind: "tunnel"
  /** The origin of prepared requests, instead of the target's own, which only the tunnel's client knows. */
  readonly origin: string
}

/** Sends nothing: a consumer fetches the prepared message and reports the result. While no consumer asks, nothing is prepared. Pure. */
export interface PullSender extends Requesting {
  readonly kind: "pull"
  /** The origin of prepared requests. No host has it, because nothing is sent there. */
  readonly origin: string
  /** How long (ms) a consumer may take for a message. */
  readonly leaseMs: number
}

export type Sender = HttpSender | LocalSender | SessionSender | TunnelSender | PullSender

/** The meaning of an HTTP status: 2xx is success. A retry rule can make other statuses final. */
export const judgeStatus = ({ status }: Pick<Answer, "status">): Verdict =>
  status >= 200 && status < 300
    ? "successful"
    : { code: "BAD_RESPONSE", message: `HTTP ${status} from destination`, final: false }
