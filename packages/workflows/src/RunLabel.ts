import { compileMapping, type Mapping } from "@tidegate/interpolation/Mapping"
import type { Json } from "@tidegate/model/Rule"
import { Result } from "effect"
import { wayFault } from "./ContextNames.ts"
import { limits } from "./Limits.ts"
import { withoutSecrets } from "./Preview.ts"
import type { Facts } from "./RunState.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Resumable } from "./StepKind.ts"

/**
 * The label of a run: a text by which people find it, such as the number of an order. A workflow has a template for it, which is
 * evaluated when a run begins. So it reads the request, and no step.
 */

const roots = ["trigger", "run", "workflow", "source"] as const

/** A compiled template. */
export type LabelTemplate = Mapping

/** The compiled template. A stored one compiles, because it was checked when it was written. */
export const compileLabel = (template: string | null): LabelTemplate | null =>
  template === null ? null : Result.getOrElse(compileMapping(template, roots), () => null)

/** Why a text is no template of a label; null: it is one. */
export const labelFault = (template: string): string | null => {
  const compiled = compileMapping(template, roots)
  if (Result.isFailure(compiled)) return compiled.failure.message
  for (const { root, way } of compiled.success.references) {
    const fault = wayFault([root, ...way], roots)
    if (fault !== null) return fault
  }
  return null
}

const textOf = (value: Json): string =>
  typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value)

/** Control characters and line breaks are of no use in a row of a list, and a text column cannot hold NUL. */
const inOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim()

/**
 * The label of a run, without secrets; null when its template stands for nothing. It is cut before it is searched, with room for
 * a secret at the cut end.
 */
export function* labelling(template: LabelTemplate, facts: Facts, texts: SecretTexts): Resumable<string | null> {
  const resolved = template.resolve(facts)
  if (resolved.kind === "too_large") return null
  const whole = inOneLine(textOf(resolved.value))
  const cut = whole.slice(0, 4 * limits.labelLength).toWellFormed()
  const shown = (yield* withoutSecrets(yield* texts.message(cut), texts)) as string
  const label = Array.from(inOneLine(shown)).slice(0, limits.labelLength).join("").trimEnd()
  return label === "" ? null : label
}
