import type { ReactNode } from "react"
import type { Row } from "../../gateway.ts"
import { exactJson } from "../../json.ts"

export type Rule = Row<"Connection">["rules"][number]
export type RuleType = Rule["type"]
export type RuleOf<Type extends RuleType> = Extract<Rule, { readonly type: Type }>

/** How a kind of rule is written on the dashboard. Each kind has a file of its own, and a line in `RuleKinds.ts`. */
export interface RuleKind<Type extends RuleType = RuleType> {
  readonly type: Type
  readonly title: string
  /** What the rule does, in a sentence. */
  readonly about: string
  /** What a rule is when it is added. */
  readonly fresh: RuleOf<Type>
  readonly Form: (props: RuleForm<Type>) => ReactNode
}

export interface RuleForm<Type extends RuleType = RuleType> {
  readonly rule: RuleOf<Type>
  /** Null: what is written is no rule yet. */
  readonly change: (rule: RuleOf<Type> | null) => void
}

/** What the reader means by a value: JSON, or else a text. */
export const valueOf = (text: string): unknown => {
  try {
    return exactJson.parse(text)
  } catch {
    return text
  }
}

/** The parts of a list that is written with commas between them. */
export const listOf = (text: string): Array<string> =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
