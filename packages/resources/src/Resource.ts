import { Result, Schema } from "effect"
import type { ErrorCode, GatewayError } from "@tidegate/model/GatewayError"
import type { Prefix } from "@tidegate/model/Ids"
import type { Ingress } from "@tidegate/model/Ingress"
import { runToEnd, type Resumable } from "@tidegate/runtime/Resumable"
import type { Permission } from "@tidegate/model/Permission"
import type { Warning } from "@tidegate/model/Warning"
import { type FieldErrors, judgeBody, type Members, orInvalid } from "./Input.ts"

/**
 * A kind of thing that operators create, change and delete, declared once. The store, the actor, the API's group and its
 * handlers, and the document all read the declaration; what is special about a resource stands beside what it is special in.
 */

/** What a body is judged in the light of. */
export interface Situation {
  /** The resource's id; null while it has none. */
  readonly id: string | null
  readonly now: Date
  readonly ingress: Pick<Ingress["Service"], "baseUrl">
}

/** One kind of body that a resource is written with. */
export interface Body<Message extends Schema.Codec<unknown>, Described extends Schema.Top = Schema.Top> {
  /** What its owner is sent: the body, found right as far as it can be told from the body alone. */
  readonly message: Message
  /** What the document says of it, and the derived client takes. */
  readonly described: Described
  /** Every fault of a body in one answer. */
  readonly judge: (written: Members, situation: Situation) => Result.Result<Message["Type"], GatewayError>
  /** What is said of names that it has elsewhere, or in another spelling, rather than that nobody knows them. */
  readonly misplaced?: (written: Members) => FieldErrors
  /** The same in parts, where it may take long. */
  readonly judging?: (written: Members, situation: Situation) => Resumable<Result.Result<Message["Type"], GatewayError>>
}

/** How a body is judged whose judgement is in parts. */
export const inParts = <A>(
  judging: (written: Members, situation: Situation) => Resumable<Result.Result<A, GatewayError>>
) => ({
  judging,
  judge: (written: Members, situation: Situation) => runToEnd(judging(written, situation))
})

/** A body that its schema says all about. */
export interface PlainBody<S extends Schema.Codec<unknown>> extends Body<S, S> {
  readonly judge: (written: Members) => Result.Result<S["Type"], GatewayError>
}

export const bodyOf = <S extends Schema.Codec<unknown, unknown>>(schema: S): PlainBody<S> => ({
  message: schema,
  described: schema,
  judge: (written) => orInvalid(judgeBody(schema, written, Result.succeed))
})

/**
 * A body that its owner judges, whole: what it may be depends on what is stored, and one answer tells all faults. An id that there is
 * not is told of before them.
 */
export const judgedByOwner = <Described extends Schema.Top>(
  described: Described
): Body<typeof Schema.JsonObject, Described> => ({
  message: Schema.JsonObject,
  described,
  judge: Result.succeed
})

/** What can be switched, by a call of its own. Repeated, a switch changes nothing. */
export const switches = {
  disable: { column: "disabled_at", on: true },
  enable: { column: "disabled_at", on: false },
  pause: { column: "paused_at", on: true },
  unpause: { column: "paused_at", on: false }
} as const
export type Switch = keyof typeof switches

/**
 * How a field is stored, in the column of its name. `sealed`: a JSON object, encrypted. `since`: true or false, as the moment since
 * when it is true, in the column of its name with `_at`.
 */
export type Column = "plain" | "json" | "sealed" | "since"

/** What a change makes of stored fields. A sealed one that the caller did not write stays as it is, even if it cannot be read. */
export type Change<Fields, Columns> = {
  readonly [Name in keyof Fields]: Name extends keyof Columns
    ? Columns[Name] extends "sealed"
      ? Fields[Name] | "unchanged"
      : Fields[Name]
    : never
}

/** The next fields of a resource; asked again when what is stored has changed meanwhile. */
export type Next<Fields, Columns> = (stored: Fields) => Result.Result<Change<Fields, Columns>, GatewayError>

/** What the document says of one operation. What is left out is said in general words. */
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
  /** In the singular, as errors name it. */
  readonly name: Name
  /** Its group, its path and its table. */
  readonly plural: Plural
  /** Of its ids; no other resource's. */
  readonly prefix: Prefix
  /** What it is, as the document says it. */
  readonly description: string
  /** Who may make its calls, where not every member of the team and every key may. */
  readonly permissions?: { readonly read?: Permission; readonly edit?: Permission }
  /** What a create answers with, where that is not 200. */
  readonly created?: 201
  /** What is particular about its calls. */
  readonly said?: { readonly [Name in Operation | NoInfer<Switches>]?: Said }
  /** As its owner answers it. */
  readonly record: Record
  /** As lists show it, where that is less. */
  readonly listed?: Schema.Codec<unknown, unknown>
  /** What a write of it leaves open; told in its answer, beside the record. `looked up`: whoever handles its calls tells it. */
  readonly warnings?: ((record: Record["Type"]) => ReadonlyArray<Warning>) | "looked up"
  /** What its delete answers beside its id. */
  readonly deleted?: { readonly fields: Schema.Struct.Fields; readonly example: Schema.JsonObject }
  /** The whole of it. */
  readonly write: Write
  /** A part of it. */
  readonly patch: Patch
  /** What a create stores. */
  readonly create: (input: Write["message"]["Type"], situation: Situation) => Result.Result<Fields, GatewayError>
  readonly change: (input: Patch["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  /** How an upsert that found it changes it, where that is not how a part does. */
  readonly upsert?: (input: Write["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  /** How a PUT changes it, where that is not how a part does. */
  readonly replace?: (input: Write["message"]["Type"], situation: Situation) => Next<Fields, Columns>
  readonly columns: Columns
  readonly switches: ReadonlyArray<Switches>
  /** The columns that a list reads of its rows, where these are not all. */
  readonly outline?: ReadonlyArray<string>
  /** What its records are large by in a list, in bytes, as an SQL expression over its row `t`: pages end by it. */
  readonly weight: string
  /** The largest body that it is written with, in bytes. */
  readonly largestBody: number
  /** How many a team may have, unless the operator says otherwise, where that is not `usualMost`. */
  readonly most?: number
  /** What a create beyond it fails with, however it is asked for, where that is not `LIMIT_EXCEEDED`; `data` has the `limit`. */
  readonly limitCode?: ErrorCode
  /** The JSON values that it may have, where that is less than of any body. */
  readonly maxValues?: number
  /** What its calls can fail with beyond what any resource's can. */
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

/** The name of a resource as types have it: `Transformation`. */
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
 * The bodies of a resource whose members are its fields: those with a default may be left out, or null, which both mean it;
 * the others are needed. A part has any of them, and what it leaves out stays.
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
