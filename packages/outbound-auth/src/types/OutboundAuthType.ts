import { createHash } from "node:crypto"
import type { FieldError } from "@tidegate/model/GatewayError"
import type { Result, Schema } from "effect"
import type { Grant } from "./Grant.ts"

/** A request that is complete but for what signs it. */
export interface SignedRequest {
  readonly method: string
  /** Absolute. */
  readonly url: string
  /** Flat: name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
}

/** The attempt that a signature is made for. */
export interface SignedFacts {
  readonly eventId: string
  readonly attemptNumber: number
  readonly timestampSeconds: number
}

/** What signs a request. */
export interface Signed {
  /** A flat list. They replace headers of the same names. */
  readonly headers: ReadonlyArray<string>
  /** The request's own URL, in the spelling that was signed; absent: as it was. */
  readonly url?: string
  /** Further headers, by their lower-case names, that the signature would give a meaning to: the request is sent without them. */
  readonly drops?: (name: string) => boolean
  /** What of it would let anybody else in who reads it, so that it must not be stored. */
  readonly secret?: string
}

/** A text that no other attempt has. It is derived, because this package has no randomness, and has to be unique but not secret. */
export const onceOf = ({ attemptNumber, eventId, timestampSeconds }: SignedFacts): string =>
  createHash("sha256").update(`${eventId}.${attemptNumber}.${timestampSeconds}`).digest("base64url").slice(0, 22)

/** The authentication of a destination's deliveries, prepared once after each change of its settings. */
export interface DeliveryAuth {
  /** Headers of every delivery, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether deliveries are signed with the team's signing secret. */
  readonly signs: boolean
  /** How the bearer token of every delivery is obtained; absent: there is none. */
  readonly grant?: Grant
  /** A secret parameter of every delivery's URL, in plain text. */
  readonly query?: { readonly name: string; readonly value: string }
  /** What carries an obtained token. Absent: `authorization`, as a bearer token. */
  readonly carry?: (token: string) => Carried
  /** Signs a request as a whole. Absent: nothing is signed in this way. */
  readonly sign?: (request: SignedRequest, facts: SignedFacts) => Promise<Signed>
}

/** What carries the token of a grant. */
export type Carried = Pick<DeliveryAuth, "headers" | "sign">

/** The authentication of deliveries with the token that their grant has obtained. */
export const carrying = ({ carry, headers }: Pick<DeliveryAuth, "carry" | "headers">, token: string): Carried =>
  carry?.(token) ?? { headers: { ...headers, authorization: `Bearer ${token}` } }

export const nothing: DeliveryAuth = { headers: {}, signs: false }

/** One kind of authentication for deliveries: a row of the table in `OutboundAuth.ts`. */
export interface OutboundAuthType<Fields extends Schema.Struct.Fields = Schema.Struct.Fields> {
  readonly type: string
  /** For the API document, if the name is not clear enough. */
  readonly description?: string
  /** The members of `config.auth`: their schemas validate them and are shown in the API document. All kinds also have the flag `disabled`. */
  readonly settings: Fields
  /** Alternative names that are accepted on write, with the canonical ones. */
  readonly aliases: Readonly<Record<string, string>>
  /** Replaces a setting that contains several others by these, before validation. */
  readonly expand?: (auth: Schema.JsonObject) => Result.Result<Schema.JsonObject, ReadonlyArray<FieldError>>
  /** Errors of complete settings as a whole. */
  readonly check?: (auth: Schema.Struct.Type<Fields>) => ReadonlyArray<FieldError>
  /** The setting with the address to which the secrets are sent: if it changes, the secrets must be written again. */
  readonly sentTo?: Extract<keyof Fields, string>
  /**
   * Whether the secret, or the token obtained with it, is sent to the target: if the target changes, the secret must be written again. The name
   * of a setting: true only if that setting is written.
   */
  readonly reachesTarget?: true | Extract<keyof Fields, string>
  /** The settings that are readable; all others are masked. */
  readonly readable: ReadonlyArray<string>
  readonly compile: (auth: Schema.Struct.Type<Fields>) => DeliveryAuth
}

/** Creates a row, for any kind of settings. */
export const authType = <const Fields extends Schema.Struct.Fields>(row: OutboundAuthType<Fields>): OutboundAuthType =>
  // Its functions are only called with settings that its own schema has validated.
  row as unknown as OutboundAuthType
