import { useState } from "react"
import type { Rule } from "./Rule.ts"
import { ruleKinds } from "./RuleKinds.ts"

/** A rule that is being written. */
export interface Draft {
  readonly key: number
  /** The rule as it was when its form was last drawn completely. Forms also keep input that is not a valid rule yet. */
  readonly rule: Rule
  readonly isValid: boolean
}

export type Drafts = ReadonlyArray<Draft>

export const draftsOf = (rules: ReadonlyArray<Rule>): Drafts => rules.map((rule, key) => ({ key, rule, isValid: true }))

/** Null: a rule is not complete. */
export const rulesOf = (drafts: Drafts): Array<Rule> | null =>
  drafts.every(({ isValid }) => isValid) ? drafts.map(({ rule }) => rule) : null

const placeOf = (type: string): number => ruleKinds.findIndex((kind) => kind.type === type)

const isComplete = (rule: Rule): boolean => rule.type !== "transform" || rule.transformation_id !== ""

/** The rules of a connection, each with its form, in the order in which they apply. */
export const RuleBuilder = ({
  change,
  drafts
}: {
  readonly drafts: Drafts
  readonly change: (drafts: Drafts) => void
}) => {
  const [added, setAdded] = useState("")
  const open = ruleKinds.filter(({ type }) => type === "filter" || drafts.every(({ rule }) => rule.type !== type))
  const add = (type: string) => {
    const kind = ruleKinds.find((one) => one.type === type)
    if (kind === undefined) return
    const key = 1 + Math.max(0, ...drafts.map((one) => one.key))
    const next = [...drafts, { key, rule: kind.fresh, isValid: isComplete(kind.fresh) && type !== "filter" }]
    change(next.toSorted((a, b) => placeOf(a.rule.type) - placeOf(b.rule.type)))
    setAdded("")
  }
  return (
    <div className="stack">
      {drafts.length === 0 ? <p>There are no rules: every request is delivered at once.</p> : null}
      {drafts.map((draft) => {
        const { isValid, key, rule } = draft
        const { Form, about, title } = ruleKinds[placeOf(rule.type)]!
        return (
          <fieldset key={key} className="rule">
            <legend>{title}</legend>
            <p className="muted">{about}</p>
            <Form
              rule={rule}
              change={(next) =>
                change(
                  drafts.map((one) =>
                    one === draft
                      ? { key, rule: next ?? rule, isValid: next !== null && isComplete(next) && hasConditions(next) }
                      : one
                  )
                )
              }
            />
            <div className="bar">
              <button
                type="button"
                aria-label={`Remove the rule ${title}`}
                onClick={() => change(drafts.filter((one) => one !== draft))}
              >
                Remove
              </button>
              {isValid ? null : <span className="fault">This rule is not complete yet.</span>}
            </div>
          </fieldset>
        )
      })}
      <div className="bar">
        <select aria-label="New rule" value={added} onChange={({ target }) => setAdded(target.value)}>
          <option value="">Choose a rule</option>
          {open.map(({ title, type }) => (
            <option key={type} value={type}>
              {title}
            </option>
          ))}
        </select>
        <button type="button" disabled={added === ""} onClick={() => add(added)}>
          Add the rule
        </button>
      </div>
    </div>
  )
}

/** A filter needs a condition or a stored filter. */
const hasConditions = (rule: Rule): boolean => rule.type !== "filter" || Object.keys(rule).length > 1
