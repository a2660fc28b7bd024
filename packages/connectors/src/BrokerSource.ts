import type { Effect, Schema, Scope } from "effect"
import type { BrokerAuthType, BrokerType } from "@tidegate/model/BrokerSource"
import type { BrokerRefusal } from "./Brokers.ts"
import type { Meaning } from "./BrokerSession.ts"
import type { SessionFailure } from "./Failure.ts"
import type { Origins } from "./Origins.ts"
import { textOf, wholeNumber } from "./Server.ts"
import { refusalText } from "./ServerWords.ts"
import { type Config, type FieldErrors, setting, type Settings, type SettingsOf } from "./Settings.ts"
import {
  type Bearer,
  type Subscription,
  type SubscriptionPlaces,
  type SubscriptionProtocol,
  Subscriptions
} from "./Subscriptions.ts"

const maxPrefetched = 200
const notPrefetch = `must be a whole number from 1 to ${maxPrefetched}`

/** How many messages are under way at once. */
export const prefetching = (description: string) =>
  setting(wholeNumber(1, maxPrefetched, notPrefetch).annotate({ description }), 50, notPrefetch)

/** What a subscription needs in addition to its settings and credentials. */
export interface Access {
  /** The source of tokens that the credentials are exchanged for. Null: the credentials are used directly. */
  readonly bearer: Bearer | null
  readonly origins: Origins
}

/** A type of sources whose requests are the messages of a subscription at a broker. */
export interface BrokerSourceOf<Own extends Settings, P extends SubscriptionProtocol> {
  readonly type: BrokerType
  /** The name by which people know the broker. */
  readonly name: string
  readonly description: string
  /** The members of `config.subscription`. */
  readonly settings: Own
  /** Returns the errors of settings that are valid alone, but not together. */
  readonly check?: (settings: SettingsOf<Own>) => FieldErrors
  /** The types of credentials with which the gateway may sign in at the broker. Null: it may also have none. */
  readonly auths: readonly [BrokerAuthType, ...ReadonlyArray<BrokerAuthType | null>]
  /** The address to which the settings send the credentials. If a change leads to another address, the credentials must be written again. */
  readonly leadsTo: (settings: SettingsOf<Own>) => string
  readonly protocol: P
  /** Default scope of tokens, if `config.auth.scope` is not written. */
  readonly scope?: string
  readonly place: (settings: SettingsOf<Own>, auth: Schema.JsonObject, access: Access) => SubscriptionPlaces[P]
  /** By the codes of the protocol. */
  readonly meanings: Readonly<Record<string, Meaning>>
  /** Settings of a body that a reader can copy. */
  readonly example: {
    readonly subscription: Config
    readonly auth_type?: BrokerAuthType
    readonly auth: Schema.JsonObject
  }
}

export interface BrokerSource extends Omit<
  BrokerSourceOf<Settings, SubscriptionProtocol>,
  "check" | "leadsTo" | "place"
> {
  readonly check?: (settings: Config) => FieldErrors
  readonly leadsTo: (settings: Config) => string
  /** Connects and subscribes by stored settings; the connection ends with the scope. */
  readonly subscribe: (
    settings: Config,
    auth: Schema.JsonObject,
    access: Access
  ) => Effect.Effect<Subscription, BrokerRefusal | SessionFailure, Subscriptions | Scope.Scope>
}

/** The type of the table does not know the settings of its rows. A row only gets settings that its own schemas have completed. */
export const brokerSource = <const Own extends Settings, P extends SubscriptionProtocol>({
  place,
  ...row
}: BrokerSourceOf<Own, P>): BrokerSource =>
  ({
    ...row,
    subscribe: (settings: SettingsOf<Own>, auth: Schema.JsonObject, access: Access) =>
      Subscriptions.use(({ open }) => open(row.protocol, place(settings, auth, access)))
  }) as unknown as BrokerSource

/** The credentials that a broker may repeat to the owner of the source. */
const shown: ReadonlySet<string> = new Set(["username", "access_key_id", "client_email", "token_uri"])

/** Why a connection could not be made or has ended, for the owner of the source. It contains no secret. */
export const failureText = (
  { meanings }: Pick<BrokerSource, "meanings">,
  failure: BrokerRefusal | SessionFailure,
  auth: Schema.JsonObject
): string => {
  if (failure._tag === "SessionFailure") return failure.message
  const what = Object.hasOwn(meanings, failure.code) ? meanings[failure.code]!.what : "the broker has refused"
  const secrets = Object.entries(auth).map(([name, value]) => (shown.has(name) ? "" : textOf(value)))
  return refusalText(what, failure.code, failure.said, secrets)
}
