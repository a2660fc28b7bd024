import { Data, type Effect, type Schema, type Scope } from "effect"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { Message, MessageHead, Values } from "@tidegate/model/Message"
import type { SigningSecret } from "@tidegate/outbound-auth/DeliverySignature"
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
import type { SqlServers } from "./SqlServers.ts"

/**
 * What a type of destinations is: its settings, how it may authenticate, and how one of its destinations sends. Everything that
 * concerns a type stands in its own file; everybody else reads the table in `Connectors.ts`.
 */
export interface Connector<Own extends Settings = Settings> {
  readonly type: string
  /** For the document. */
  readonly description: string
  readonly settings: Own
  /** Members of a written `config` that would be dropped in silence, and are refused instead, but for these values. */
  readonly none?: Readonly<Record<string, NoSetting>>
  /** Puts what is written by other names in its place; their own schemas stand in `none`. */
  readonly aliases?: (written: Config) => Config
  /** How fast its destinations deliver unless their settings say otherwise; it has the settings of `pacingOf` by that. */
  readonly pace?: Pace
  /** What is wrong with the settings as a whole. */
  readonly check?: (settings: SettingsOf<Own>) => FieldErrors
  /** The rows of `OutboundAuth.ts` that it can use. */
  readonly auths: ReadonlyArray<string>
  /** The origins of the APIs that it calls: those that it asks `Origins` for. */
  readonly origins?: ReadonlyArray<string>
  /** What tokens are asked for when `config.auth.scope` is not written. */
  readonly scope?: string
  /** What becomes of the credentials that senders presented: `mask` where what is sent is kept, or shown to others. */
  readonly credentials: "forward" | "mask" | "omit"
  /** How a workflow's step sends by it, where that is not told by the settings alone. */
  readonly perStep?: PerStep
  /** Whether deliveries say the path and the query of their request. Without it they do where a template names them. */
  readonly carriesPath?: (config: Config) => boolean
  /** Whether its senders are tunnels': requests count the events that go through one. */
  readonly isTunnel?: true
  /** Where the credentials of a destination are sent, if its settings say so: they stay where they were written for. */
  readonly leadsTo?: (settings: SettingsOf<Own>) => string
  /** What a read shows in `config` beside the settings, and is made of them. */
  readonly shown?: (settings: SettingsOf<Own>) => Readonly<Record<string, Schema.Json>>
  /** A body that creates one. */
  readonly example: Schema.JsonObject
  /** Once per change of a destination, and of its token where it has one. What throws here costs every attempt, and nothing else. */
  readonly open: (settings: SettingsOf<Own>, auth: OpenAuth, origins: Origins) => Sender
}

/** What a step of a workflow gives beside the settings, each of which is an input of it. */
export interface PerStep {
  /** Settings that a step does not give. */
  readonly without?: ReadonlyArray<string>
  /** What stands for an event's body. */
  readonly payload: Setting
  /** Its name among the inputs. */
  readonly name: string
  /** An example of it. */
  readonly example: Schema.Json
  /** The inputs that tell where credentials go, and how well they are kept on their way: none of them is another one than was saved. */
  readonly address?: ReadonlyArray<string>
  /** The settings that follow from it. */
  readonly settings?: (payload: Schema.Json) => Config
}

/** A row of the table, whatever its settings are. */
export const connector = <const Own extends Settings>(row: Connector<Own>): Connector =>
  // It is opened with what its own settings have judged.
  ({
    ...row,
    settings: row.pace === undefined ? row.settings : { ...row.settings, ...pacingOf(row.pace) }
  }) as unknown as Connector

/** Of types that send the payload itself. */
export const payloadPerStep = (description: string): PerStep => ({
  name: "payload",
  payload: setting(AnyJson.annotate({ description }), null, "must be JSON"),
  example: { id: "o_1" }
})

/** How a destination's deliveries authenticate, opened. */
export interface OpenAuth {
  /** Headers that every delivery carries, by lower-case name; `authorization` with a token that was obtained among them. */
  readonly headers: Readonly<Record<string, string>>
  /** The team's signing secrets in force, newest first; null when deliveries are not signed. */
  readonly signing: readonly [SigningSecret, ...ReadonlyArray<SigningSecret>] | null
  /** The settings of its `auth_type` in the clear, for what no header says: an account, a password. */
  readonly settings: Schema.JsonObject
}

/** What one attempt says about itself. */
export interface AttemptFacts {
  readonly eventId: string
  readonly requestId: string
  readonly teamId: string
  readonly sourceId: string
  readonly connectionId: string
  readonly destinationId: string
  /** The root event's id: the same for every attempt and every retry of it, so that receivers can deduplicate. */
  readonly webhookId: string
  readonly attemptNumber: number
  readonly trigger: string
  /** Seconds until the next attempt should this one fail; null when it is the last. */
  readonly willRetryAfter: number | null
  readonly sourceName: string
  readonly connectionName: string
  readonly destinationName: string
  readonly verified: boolean
  readonly originalIp: string | null
  /** When the event was made (Unix ms). */
  readonly createdAt: number
  readonly timestampSeconds: number
  /** The message as it may be shown: without what the sender presented. */
  readonly shown: MessageHead
  /** What is sent for a step of a workflow is of no connection, and `eventId` is the step's: the same for all of its attempts. */
  readonly isStep?: boolean
}

export interface OutboundRequest {
  readonly method: string
  readonly url: string
  /** The URL as it is recorded, with no secret in it. */
  readonly shownUrl: string
  /** Flat: name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
  /** URLs that the target is told to fetch itself: each has to lead to a public host, or nothing is sent. */
  readonly fetched?: ReadonlyArray<string>
}

/** Why nothing is sent. It would be the same at the next attempt: there is none. Neither text holds a secret. */
export class Refusal extends Data.Class<{
  readonly code: AttemptErrorCode
  readonly message: string
  readonly method: string
  readonly shownUrl: string
}> {}

/** What a target has said, in full or as much of it as is kept. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, Values[string] | undefined>>
  readonly body: Buffer
  readonly bodyTruncated: boolean
}

/** How an attempt has failed. `final`: the next one would fail likewise. The message holds no secret. */
export interface Failure {
  readonly code: AttemptErrorCode
  readonly message: string
  readonly final: boolean
  /** In seconds, when the target has said it in its body and not by `retry-after`. */
  readonly retryAfter?: number
}

/** What an answer means. */
export type Verdict = "successful" | Failure

interface Requesting {
  readonly prepare: (message: Message, facts: AttemptFacts) => OutboundRequest | Refusal
  /** Asked of what a target has answered; that none has is a failure already. */
  readonly judge: (answer: Answer) => Verdict
}

/** Sends by HTTP. Pure: the guarded way out does it. */
export interface HttpSender extends Requesting {
  readonly kind: "http"
  /** Adds what takes its time to be made, a signature of a large body; without it nothing waits. A rejection fails the attempt. */
  readonly complete?: (request: OutboundRequest, facts: AttemptFacts) => Promise<OutboundRequest>
}

/** Sends nothing, and answers itself. Pure, and quick: it runs on the loop that everybody shares. */
export interface LocalSender extends Requesting {
  readonly kind: "local"
  readonly answer: (request: OutboundRequest) => Answer
}

/**
 * A send over a session has failed. `broken`: the session is not used again. `unsent`: the gateway itself had no room for it, for
 * seconds: that is no attempt, and it is asked again at once.
 */
export class SessionFailure extends Data.TaggedError("SessionFailure")<
  Failure & {
    readonly broken: boolean
    readonly unsent?: true
  }
> {}

/** Of a send that was told not to begin, or not to go on. */
export const cancelled = new SessionFailure({
  code: "NETWORK_REQUEST_CANCELED",
  message: "cancelled by the gateway",
  final: false,
  broken: false
})

export interface Session {
  /**
   * Sends one message; several at once. May be interrupted at any point, and is when its time is over. `mayStart` is asked when
   * nothing but the message is left to be sent: false ends it as `cancelled`.
   */
  readonly send: (
    message: Message,
    facts: AttemptFacts,
    mayStart: () => boolean
  ) => Effect.Effect<Answer, SessionFailure>
}

/**
 * Sends over a connection that it holds. It is opened by the first delivery, shared by all, and closed with its scope: when it
 * is idle or broken, when the settings change, and when the destination's actor goes.
 */
export interface SessionSender {
  readonly kind: "session"
  /** What an attempt's record has for a method and a URL: no secret in it. */
  readonly method: string
  readonly shownUrl: string
  /** No more sends at once than these, whatever the target takes. */
  readonly atOnce: number
  readonly connect: Effect.Effect<Session, SessionFailure, Scope.Scope | SessionServices>
}

/** What sessions reach their servers by. Who runs them has it. */
export type SessionServices = SqlServers

/**
 * Sends to a program that holds a tunnel open, which calls a target of its own. Nothing is sent while there is none: the
 * destination's actor waits for it. Pure.
 */
export interface TunnelSender extends Requesting {
  readonly kind: "tunnel"
  /** The origin of what is prepared, in the place of the target's own: its client knows that. */
  readonly origin: string
}

export type Sender = HttpSender | LocalSender | SessionSender | TunnelSender

/** What an HTTP status means: 2xx is success. A retry rule may say that others are final. */
export const judgeStatus = ({ status }: Pick<Answer, "status">): Verdict =>
  status >= 200 && status < 300
    ? "successful"
    : { code: "BAD_RESPONSE", message: `HTTP ${status} from destination`, final: false }
