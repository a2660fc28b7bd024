import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useSession } from "../../session.ts"
import type { RuleForm, RuleKind } from "./Rule.ts"

const Form = ({ change, rule }: RuleForm<"transform">) => {
  const { client, team } = useSession()
  const stored = useQuery({
    queryKey: ["stored transformations", team],
    queryFn: () => client.get("/transformations", { params: { query: { limit: 255 } } })
  })
  const all = stored.data?.models ?? []
  const chosen = rule.transformation_id
  return (
    <div className="bar">
      <label className="field">
        Transformation
        <select
          value={chosen}
          onChange={({ target }) => change({ type: "transform", transformation_id: target.value })}
        >
          <option value="">–</option>
          {chosen === "" || all.some(({ id }) => id === chosen) ? null : <option value={chosen}>{chosen}</option>}
          {all.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {chosen === "" ? (
        <Link to="/transformations/new">Write a new one</Link>
      ) : (
        <Link to={`/transformations/${chosen}`}>Look at its code</Link>
      )}
    </div>
  )
}

export const transformRule: RuleKind<"transform"> = {
  type: "transform",
  title: "Transform",
  about: "Code changes the request before the filters see it.",
  fresh: { type: "transform", transformation_id: "" },
  Form
}
