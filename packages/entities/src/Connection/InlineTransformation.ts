import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import type { Sandbox } from "@tidegate/sandbox/Sandbox"
import { checkCode } from "../Transformation/CheckCode.ts"

/** 400 TRANSFORMATION_INVALID unless the code of every transformation written inside these rules compiles. */
export const checkInlineCode = (rules: ReadonlyArray<Rule>): Effect.Effect<void, GatewayError, Sandbox> =>
  Effect.forEach(
    rules,
    (rule) =>
      rule.type === "transform" && "transformation" in rule ? checkCode(rule.transformation.code) : Effect.void,
    { discard: true }
  )
