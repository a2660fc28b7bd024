import { Result, Schema } from "effect"
import type { ErrorCode, GatewayError } from "@tidegate/model/GatewayError"
import type { Prefix } from "@tidegate/model/Ids"
import type { Ingress } from "@tidegate/model/Ingress"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import type { Permission } from "@tidegate/model/Permission"
import type { Warning } from "@tidegate/model/Warning"
import { type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"

/**
 * A kind of resource that operators create, change and delete, declared once. The store, the actor, the API's group and its
 * handlers, and the document all read the declaration. What is special about a resource is in the place that it affects.
 */

/** The context in which a body is validated. */
export interface Situation {
  /** The resource's id; null: it has none yet. */
  readonly id: string | null
  readonly now: Date
  readonly ingress: Pick<Ingress["Service"], "baseUrl">
}

/** One kind of body of a resource. */
export interface Body<Message extends Schema.Codec<unknown>, Described extends Schema.Top = Schema.Top> {
  /** The message to its actor: the body, validated as far as possible without other data. */
  readonly message: Message
  /** The schema for the document and the derived client. */
  readonly described: Described
  /** Returns all faults of a body in one answer. */
  readonly judge: (written: Members, situation: Situation) => Result.Result<Message["Type"], GatewayError>
  /** Messages for names that belong elsewhere, or are spelled differently, instead of "unknown". */
  readonly misplaced?: (written: Members) => FieldErrors
  /** The same as resumable work, when it may take long. */
  readonly judging?: (written: Members, situation: Situation) => Resumable<Result.Result<Message["Type"], GatewayError>>
}

/** Completes a body whose validation is resumable. */
export const inParts = <A>(
  judging: (written: Members, situation: Situation) => Resumable<Result.Result<A, GatewayError>>
) => ({
  judging,
  judge: (written: Members, situation: Situation) => runToEnd(judging(written, situation))
})

/** A body that its schema describes completely. */
export interface PlainBody<S extends Schema.Codec<unknown>> extends Body<S, S> {
  readonly judge: (written: Members) => Result.Result<S["Type"], GatewayError>
}

export const bodyOf = <S extends Schema.Codec<unknown, unknown>>(schema: S): PlainBody<S> => ({
  message: schema,
  described: schema,
  judge: (written) => orInvalid(judgeBody(schema, written, Result.succeed))
})

/**
 * A body that its owner validates as a whole: its valid form depends on what is stored, and one answer has all faults. An unknown
 * id is reported before them.
 */
export const judgedByOwner = <Described extends Schema.Top>(
  described: Described
): Body<typeof Schema.JsonObject, Described> => ({
  message: Schema.JsonObject,
  described,
  judge: Result.succeed
})

/** What can be switched, each by a call of its own. A repeated switch changes nothing. */
export const switches = {
  disable: { column: "disabled_at", on: true },
  enable: { column: "disabled_at", on: false },
  pause: { column: "paused_at", on: true },
  unpause: { column: "paused_at", on: false }
} as const
export type Switch = keyof typeof switches

/**
 * How a field is stored, in the column of its name. `sealed`: an encrypted JSON object. `since`: true or false, stored as the
 * time since when it is true, in the column of its name with `_at`.
 */
export type Column = "plain" | "json" | "sealed" | "since"

/** The changes of stored fields. A sealed field that the caller did not write stays unchanged, even if it cannot be decrypted. */
export type Change<Fields, Columns> = {
  readonly [Name in keyof Fields]: Name extends keyof Columns
    ? Columns[Name] extends "sealed"
      ? Fields[Name] | "unchanged"
      : Fields[Name]
    : never
}

/** Computes the next fields of a resource; called again when the stored ones have changed meanwhile. */
export type Next<Fields, Columns> = (stored: Fields) => Result.Result<Change<Fields, Columns>, GatewayError>

/** The document's text about one operation. Absent parts get a general text. */
export interface Said {
  readonly summary?: string
  readonly description: string
  /** An example of its own. */
  readonly body?: Schema.Json
  readonly answer?: Schema.Json
}

/** The calls that every resource has, beside its switches. */
export type Operation = "list" | "create" | "upsert" | "retrieve" | "update" | "replace" | "delete"

export interface Resource<
  Name extends string,
  Plural extends string,
  Record extends Schema.Codec<unknown, unknown>,
  Write extends Body<Schema.Codec<unknown>>,
  Patch extends Body<Schema.Codec<unknown>>,
  Fields,
  Columns extends { readonly [Field in keyof Fields]: Column },
  Switches extends Switch
> {
  /** The singular, for error messages. */
  readonly name: Name
  /** The name of its group, its path and its table. */
  readonly plural: Plural
  /** The prefix of its ids; unique. */
  readonly prefix: Prefix
  /** What it is, for the document. */
  readonly description: string
  /** Who may make its calls, if not every member of the team and every key. */
  readonly permissions?: { readonly read?: Permission; readonly edit?: Permission }
  /** The status of a create's answer, if it is not 200. */
  readonly created?: 201
  /** The text about particular calls. */
  readonly said?: { readonly [Name in Operation | NoInfer<Switches>]?: Said }
  /** The schema of its record. */
  readonly record: Record
  /** The schema of a list's row, if it has less. */
  readonly listed?: Schema.Codec<unknown, unknown>
  /** The warnings of a write, which are returned beside the record. `looked up`: the handlers of its calls provide them. */
  readonly warnings?: ((record: Record["Type"]) => ReadonlyArray<Warning>) | "looked up"
  /** What a delete returns beside the id. */
  readonly deleted?: { readonly fields: Schema.Struct.Fields; readonly example: Schema.JsonObject }
  /** The body of the whole resource. */
  readonly write: Write
  /** The body of a part. */
  readonly patch: Patch
  /** The fields that a create stores. */
  readonly create: (input: Write["message"]["Type"], situation: Situation) => Result.Result<Fields, GatewayError>
  readonly change: (input: Patch["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  /** How an upsert changes an existing one, if not like a partial change. */
  readonly upsert?: (input: Write["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  /** How a PUT changes it, if not like a partial change. */
  readonly replace?: (input: Write["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  readonly columns: Columns
  readonly switches: ReadonlyArray<Switches>
  /** The columns that a list reads, if not all. */
  readonly outline?: ReadonlyArray<string>
  /** The size of a record in a list, in bytes, as an SQL expression over its row `t`: pages are limited by it. */
  readonly weight: string
  /** The largest body of a write, in bytes. */
  readonly largestBody: number
  /** The default limit of one team, if it is not `usualMost`; an operator may change it. */
  readonly most?: number
  /**
   * The error code of a create beyond the limit, however it is requested, if it is not `LIMIT_EXCEEDED`; `data` has the `limit`.
   */
  readonly limitCode?: ErrorCode
  /** The largest number of JSON values, if it is lower than for any body. */
  readonly maxValues?: number
  /** The error codes of its calls beyond those of every resource. */
  readonly errors: {
    readonly write?: ReadonlyArray<ErrorCode>
    readonly delete?: ReadonlyArray<ErrorCode>
    readonly switch?: { readonly [Name in Switches]?: ReadonlyArray<ErrorCode> }
  }
  readonly example: {
    readonly body: Schema.JsonObject
    readonly patch: Schema.JsonObject
    readonly record: Schema.JsonObject
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- whichever its types are
export type AnyResource = Resource<string, string, any, any, any, any, any, any>

/** The types of a resource's parts. */
export type RecordOf<R extends AnyResource> = R["record"]["Type"]
export type FieldsOf<R extends AnyResource> = R extends {
  readonly create: (...args: never) => Result.Result<infer F, GatewayError>
}
  ? F
  : never
export type ChangeOf<R extends AnyResource> = Change<FieldsOf<R>, R["columns"]>
export type SwitchOf<R extends AnyResource> = R["switches"][number]

/** A resource from its declaration. */
export const resource = <
  const Name extends string,
  const Plural extends string,
  Record extends Schema.Codec<unknown, unknown>,
  Write extends Body<Schema.Codec<unknown>>,
  Patch extends Body<Schema.Codec<unknown>>,
  Fields,
  const Columns extends { readonly [Field in keyof Fields]: Column },
  Switches extends Switch = never
>(
  declared: Resource<Name, Plural, Record, Write, Patch, Fields, Columns, Switches>
): Resource<Name, Plural, Record, Write, Patch, Fields, Columns, Switches> => declared

/** A resource's name in the form of a type: `Transformation`. */
export const typeName = <Name extends string>(name: Name): Capitalize<Name> =>
  (name.charAt(0).toUpperCase() + name.slice(1)) as Capitalize<Name>

interface Settings {
  readonly [name: string]: Schema.Codec<unknown, unknown>
}

type Optional<Members extends Settings> = { readonly [Name in keyof Members]: Schema.optionalKey<Members[Name]> }

type Written<Members extends Settings, Defaults> = {
  readonly [Name in keyof Members]: Name extends keyof Defaults
    ? Exclude<Members[Name]["Type"], null> | (Defaults[Name] extends null ? null : never)
    : Members[Name]["Type"]
}

/**
 * The bodies of a resource whose members are its fields. Fields with a default may be absent or null, which both mean the
 * default; the others are required. A partial body may have any of them, and absent ones stay.
 */
export const plainBodies = <
  Needed extends Settings,
  const Defaulted extends Settings,
  const Defaults extends { readonly [Member in keyof Defaulted]: unknown }
>(declared: {
  readonly name: string
  readonly needed: Needed
  readonly settings: Defaulted
  readonly defaults: Defaults
  readonly sealed?: ReadonlyArray<keyof Needed | keyof Defaulted>
  readonly example: Schema.Json
}) => {
  type All = Needed & Defaulted
  type Fields = Written<All, Defaults>
  const { defaults, example, name, needed, sealed = [], settings } = declared
  const optional = (members: Settings): Settings =>
    Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Schema.optionalKey(schema) as never]))
  const Write = Schema.Struct({ ...(needed as Settings), ...optional(settings) }).annotate({
    identifier: `${typeName(name)}Write`,
    examples: [example] as never
  }) as unknown as Schema.Struct<Needed & Optional<Defaulted>>
  const Patch = Schema.Struct({ ...optional(needed), ...optional(settings) }).annotate({
    identifier: `${typeName(name)}Patch`
  }) as unknown as Schema.Struct<Optional<All>>

  const left = (field: string): unknown => (defaults as { readonly [name: string]: unknown })[field]
  const fields = Object.keys({ ...needed, ...settings })
  const merge = (input: object, rest: (field: string) => unknown): object =>
    Object.fromEntries(
      fields.map((field) => {
        const written = (input as { readonly [name: string]: unknown })[field]
        return [field, written === undefined ? rest(field) : (written ?? left(field))]
      })
    )
  return {
    write: bodyOf(Write as unknown as Schema.Codec<WrittenWhole<Needed, Defaulted>, Schema.Json>),
    patch: bodyOf(Patch as unknown as Schema.Codec<WrittenPart<All>, Schema.Json>),
    create: (input: WrittenWhole<Needed, Defaulted>): Result.Result<Fields, GatewayError> =>
      Result.succeed(merge(input, left) as Fields),
    change:
      (input: WrittenPart<All>) =>
      (stored: Fields): Result.Result<never, GatewayError> =>
        Result.succeed(
          merge(input, (field) =>
            sealed.includes(field) ? "unchanged" : (stored as { readonly [name: string]: unknown })[field]
          ) as never
        )
  }
}

type WrittenWhole<Needed extends Settings, Defaulted extends Settings> = {
  readonly [Name in keyof Needed]: Needed[Name]["Type"]
} & WrittenPart<Defaulted>

type WrittenPart<Members extends Settings> = { readonly [Name in keyof Members]?: Members[Name]["Type"] }
