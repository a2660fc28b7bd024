import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import { GatewayError } from "@tidegate/model/GatewayError"
import { type AnyResource, type SwitchOf, typeName } from "@tidegate/resources/Resource"

/**
 * What every command has about its caller. `command`: an id that the caller makes once; a repeated command with the same id
 * changes nothing. Absent for commands that are not repeated. `by`: the user; null, or absent from a process of the previous
 * version: no user.
 */
export const asked = {
  team_id: Schema.String,
  command: Schema.optionalKey(Schema.String),
  by: Schema.optionalKey(Schema.NullOr(Schema.String))
}

/**
 * A body or a record between processes, as JSON. The transport's own encoding tells the members of a union apart by their
 * literals alone, and two rules share those.
 */
export const carried = <S extends Schema.Top>(schema: S) => fromJsonText(Schema.toCodecJson(schema))

type Carried<S extends Schema.Top> = ReturnType<typeof carried<S>>

const Deleted = Schema.Struct({ id: Schema.String })
/** `more`: what else is returned beside the id. */
const DeletedWithMore = Schema.Struct({ id: Schema.String, more: Schema.optionalKey(carried(Schema.JsonObject)) })
type Deleted = Schema.Codec<{ readonly id: string; readonly more?: Schema.JsonObject }, unknown>

type Payload<Fields extends Schema.Struct.Fields> = Schema.Struct<typeof asked & Fields>

/** A command with one of a resource's bodies, which returns the record. */
type Write<Name extends string, R extends AnyResource, Of extends "write" | "patch"> = Rpc.Rpc<
  Name,
  Payload<{ readonly input: Carried<R[Of]["message"]> }>,
  Carried<R["record"]>,
  typeof GatewayError
>

/** The messages that every resource takes. */
export type Commands<R extends AnyResource> =
  | Write<"Create", R, "write">
  | Write<"Update", R, "patch">
  | Write<"Upsert", R, "write">
  | Write<"Replace", R, "write">
  | {
      [Name in SwitchOf<R>]: Rpc.Rpc<Capitalize<Name>, Payload<{}>, Carried<R["record"]>, typeof GatewayError>
    }[SwitchOf<R>]
  | Rpc.Rpc<"Delete", Payload<{}>, Deleted, typeof GatewayError>

/**
 * The commands of one resource, and the other messages of its actor. The entity id is the resource's id; `team_id` has to be the
 * resource's team. Inputs have been validated on their own; the actor validates them against what is stored. Each command returns
 * the stored record. After it has returned, everything later uses what it stored. `Update` writes a part, `Upsert` the body of an
 * upsert that found the resource, `Replace` the whole.
 */
export const protocolOf = <R extends AnyResource, const Others extends ReadonlyArray<Rpc.Any> = readonly []>(
  resource: R,
  others?: Others
): Entity.Entity<Capitalize<R["name"]>, Commands<R> | Others[number]> => {
  const { deleted, name, patch, record, switches, write } = resource
  const answered = { success: carried(record), error: GatewayError }
  const commands = [
    Rpc.make("Create", { payload: { ...asked, input: carried(write.message) }, ...answered }),
    Rpc.make("Update", { payload: { ...asked, input: carried(patch.message) }, ...answered }),
    Rpc.make("Upsert", { payload: { ...asked, input: carried(write.message) }, ...answered }),
    Rpc.make("Replace", { payload: { ...asked, input: carried(write.message) }, ...answered }),
    ...switches.map((to: string) => Rpc.make(typeName(to), { payload: asked, ...answered })),
    Rpc.make("Delete", {
      payload: asked,
      success: deleted === undefined ? Deleted : DeletedWithMore,
      error: GatewayError
    }),
    ...(others ?? [])
  ]
  return Entity.make(typeName(name), commands) as never
}
