import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { fromJsonText } from "@tidegate/json/JsonSchema"
import { GatewayError } from "@tidegate/model/GatewayError"
import { type AnyResource, type SwitchOf, typeName } from "@tidegate/resources/Resource"

/**
 * What every command says of whoever asks for it. `command`: made once by whoever sends it; the same one again changes nothing. Left out by what does
 * not repeat. `by`: the user who asks; null, or left out by a process of the version before: no user does.
 */
export const asked = {
  team_id: Schema.String,
  command: Schema.optionalKey(Schema.String),
  by: Schema.optionalKey(Schema.NullOr(Schema.String))
}

/**
 * A body or a record between processes: JSON. The transport's own layout tells the members of a union apart by their literals
 * alone, which two rules share.
 */
export const carried = <S extends Schema.Top>(schema: S) => fromJsonText(Schema.toCodecJson(schema))

type Carried<S extends Schema.Top> = ReturnType<typeof carried<S>>

const Deleted = Schema.Struct({ id: Schema.String })
/** `more`: what there is to tell beside its id. */
const DeletedWithMore = Schema.Struct({ id: Schema.String, more: Schema.optionalKey(carried(Schema.JsonObject)) })
type Deleted = Schema.Codec<{ readonly id: string; readonly more?: Schema.JsonObject }, unknown>

type Payload<Fields extends Schema.Struct.Fields> = Schema.Struct<typeof asked & Fields>

/** A command that carries one of a resource's bodies, and is answered with its record. */
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
 * The commands of one resource, and what else its actor is sent. The entity id is the resource's id, `team_id` has to be its team's.
 * Inputs have been found right by themselves; what is stored is the actor's to judge them by. Each answers with the record as
 * stored: when it has answered, everything later is handled by what it stored. `Update` writes a part, `Upsert` what an upsert that
 * found it writes, `Replace` the whole.
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
