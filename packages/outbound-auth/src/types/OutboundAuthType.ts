import type { FieldError } from "@tidegate/model/GatewayError"
import type { Result, Schema } from "effect"
import type { Grant } from "./Grant.ts"

/** What a destination's deliveries carry, prepared once per change of its settings. */
export interface DeliveryAuth {
  /** Headers that every delivery carries, by lower-cased name. */
  readonly headers: Readonly<Record<string, string>>
  /** Whether deliveries are signed with the team's signing secret. */
  readonly signs: boolean
  /** How the bearer token is obtained that every delivery carries beside; left out: none is. */
  readonly grant?: Grant
}

export const nothing: DeliveryAuth = { headers: {}, signs: false }

/** One way in which deliveries can authenticate: a row of the table in `OutboundAuth.ts`. */
export interface OutboundAuthType<Fields extends Schema.Struct.Fields = Schema.Struct.Fields> {
  readonly type: string
  /** For the document, where the name does not say it all. */
  readonly description?: string
  /** The members of `config.auth`: what judges them is what the document shows. All have the flag `disabled` beside them. */
  readonly settings: Fields
  /** Other names that are accepted on write, and what they stand for. */
  readonly aliases: Readonly<Record<string, string>>
  /** What is written in one setting and stands for several: they take its place, before anything is judged. */
  readonly expand?: (auth: Schema.JsonObject) => Result.Result<Schema.JsonObject, ReadonlyArray<FieldError>>
  /** What is wrong with complete settings as a whole. */
  readonly check?: (auth: Schema.Struct.Type<Fields>) => ReadonlyArray<FieldError>
  /** The setting that says where its secrets are sent: to another address goes none that is not written anew. */
  readonly sentTo?: Extract<keyof Fields, string>
  /**
   * Whether its secret, or what is obtained for it, is sent to the target: to another one goes none that is not written anew. A setting's
   * name: that one is, where it is written.
   */
  readonly reachesTarget?: true | Extract<keyof Fields, string>
  /** The settings that may be read back; all others are masked. */
  readonly readable: ReadonlyArray<string>
  readonly compile: (auth: Schema.Struct.Type<Fields>) => DeliveryAuth
}

/** A row, whatever its settings are. */
export const authType = <const Fields extends Schema.Struct.Fields>(row: OutboundAuthType<Fields>): OutboundAuthType =>
  // What it is given went through its own schema.
  row as unknown as OutboundAuthType
