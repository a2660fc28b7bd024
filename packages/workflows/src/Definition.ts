import { Effect, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"

/** The parts of a workflow's graph as they are stored and read back. */

const graphId = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{4,96}$/, { expected: "4 to 96 letters, digits, _ and -" })
)

const orNull = <S extends Schema.Constraint>(schema: S) =>
  Schema.NullOr(schema).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null)))

const Values = Schema.Record(Schema.String, Schema.Json)

/** An action that is written into the step, when no saved one is named. */
export const InlineAction = Schema.Struct({
  provider_key: Schema.String.check(Characters.between(1, 96)),
  action_key: Schema.String.check(Characters.between(1, 96)),
  version: Schema.String.check(Characters.between(1, 32)).pipe(Schema.withDecodingDefaultKey(Effect.succeed("1.0.0"))),
  provider_account_id: orNull(Schema.String)
})
export type InlineAction = typeof InlineAction.Type

export const Position = Schema.Struct({ x: Schema.Finite, y: Schema.Finite })

export const Step = Schema.Struct({
  id: graphId,
  /** A name of `stepKinds`; on input `paths` is accepted for `branch`. */
  kind: Schema.String,
  name: Schema.String.check(Characters.upTo(155)).pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  resource_id: orNull(Schema.String.check(Characters.between(1, 96))),
  action: orNull(InlineAction),
  /** Reserved. */
  action_revision_id: orNull(Schema.String),
  invocation_inputs: orNull(Values),
  config: Values.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  /** Its position on the canvas; it does not affect runs. */
  position: Position.pipe(Schema.withDecodingDefaultKey(Effect.succeed({ x: 0, y: 0 })))
})
export type Step = typeof Step.Type

/** An edge as it may be written: most members have a default, which depends on the graph. */
export const WrittenEdge = Schema.Struct({
  id: Schema.optionalKey(graphId),
  source_type: Schema.Literals(["trigger", "step"]),
  source_step_id: orNull(Schema.String),
  source_port: Schema.optionalKey(Schema.NullOr(Schema.String)),
  target_step_id: Schema.String,
  target_port: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("in"))),
  mapping: Schema.NullOr(Values).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
  condition: orNull(Schema.Json),
  position: Schema.optionalKey(Schema.Int)
})
export type WrittenEdge = typeof WrittenEdge.Type

export interface Edge {
  readonly id: string
  readonly source_type: "trigger" | "step"
  readonly source_step_id: string | null
  readonly source_port: string
  readonly target_step_id: string
  readonly target_port: "in"
  /** Overrides the target's inputs when this edge is taken. */
  readonly mapping: { readonly [input: string]: Schema.Json }
  readonly condition: Schema.Json
  readonly position: number
}
