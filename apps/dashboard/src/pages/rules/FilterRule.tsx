import { useQuery } from "@tanstack/react-query"
import { useSession } from "../../session.ts"
import { Conditions, membersOf } from "./Conditions.tsx"
import type { RuleForm, RuleKind } from "./Rule.ts"

const targets = ["body", "headers", "query", "path"] as const

const conditionsOf = (rule: object) =>
  Object.fromEntries(
    targets.flatMap((target) => {
      const given = membersOf(rule)[target] ?? null
      return given === null ? [] : [[target, given] as const]
    })
  )

/** Conditions of its own, or those of a stored filter. */
const Form = ({ change, rule }: RuleForm<"filter">) => {
  const { client, team } = useSession()
  const stored = useQuery({
    queryKey: ["stored filters", team],
    queryFn: () => client.get("/filters", { params: { query: { limit: 255 } } })
  })
  const filters = stored.data?.models ?? []
  const chosen = rule.filter_id ?? ""
  const isUnknown = chosen !== "" && !filters.some(({ id }) => id === chosen)
  return (
    <>
      {filters.length === 0 && chosen === "" ? null : (
        <label className="bar">
          Conditions of{" "}
          <select
            aria-label="Conditions of"
            value={chosen}
            onChange={({ target }) => {
              const { value } = target
              if (value !== "") return change({ type: "filter", filter_id: value })
              // A stored filter that is left gives its conditions to the rule.
              const own = filters.find(({ id }) => id === chosen)?.conditions ?? rule
              change({ type: "filter", ...conditionsOf(own) })
            }}
          >
            <option value="">this connection</option>
            {isUnknown ? <option value={chosen}>{chosen}</option> : null}
            {filters.map(({ id, name }) => (
              <option key={id} value={id}>
                the filter {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {chosen === "" ? (
        <Conditions
          targets={targets}
          conditions={conditionsOf(rule)}
          change={(conditions) => change(conditions === null ? null : { type: "filter", ...conditions })}
        />
      ) : null}
    </>
  )
}

export const filterRule: RuleKind<"filter"> = {
  type: "filter",
  title: "Filter",
  about: "Only requests that meet all conditions become events. There can be several filters.",
  fresh: { type: "filter" },
  Form
}
