import { useMutation } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { messageOf, type Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Panel } from "../parts/Panel.tsx"
import { useSession } from "../session.ts"

type Rule = Row<"Connection">["rules"][number]
type Members = Readonly<Record<string, unknown>>
type Explained = Row<"FilterTest">["explanation"][number]

const targets = ["body", "headers", "query", "path"] as const

const operators = [
  ["$eq", "equals"],
  ["$neq", "does not equal"],
  ["$gt", "is greater than"],
  ["$gte", "is at least"],
  ["$lt", "is less than"],
  ["$lte", "is at most"],
  ["$startsWith", "starts with"],
  ["$endsWith", "ends with"],
  ["$in", "is in the list or text"],
  ["$exist", "exists (true or false)"]
] as const

/** Requests that a filter is tried on, and calls at the same time. */
const mostRequests = 100
const together = 4

const membersOf = (value: unknown): Members =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {}

/** The conditions with one more, below the path of its value. */
const withCondition = (all: Members, [name, ...rest]: ReadonlyArray<string>, condition: Members): Members =>
  name === undefined
    ? { ...all, ...condition }
    : { ...all, [name]: withCondition(membersOf(all[name]), rest, condition) }

/** What the reader means by a value: JSON, or else a text. */
const valueOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The conditions of a connection's first filter. */
const conditionsOf = (rules: ReadonlyArray<Rule>): Members => {
  const filter = membersOf(rules.find(({ type }) => type === "filter"))
  return Object.fromEntries(
    targets.flatMap((target) => ((filter[target] ?? null) === null ? [] : [[target, filter[target]]]))
  )
}

/** The rules with other conditions in the first filter, or with a filter at their end. */
const withFilter = (rules: ReadonlyArray<Rule>, conditions: Members): Array<Rule> => {
  const filter = { type: "filter", ...conditions } as Rule
  const first = rules.findIndex(({ type }) => type === "filter")
  return first === -1 ? [...rules, filter] : rules.map((rule, index) => (index === first ? filter : rule))
}

const sentenceOf = ({ actual, expected, operator, path, target }: Explained): string =>
  `${path === "" ? target : `${target}.${path}`} ${operator ?? "must be"} ${JSON.stringify(expected)}, but it is ${
    actual === null ? "not there" : JSON.stringify(actual)
  }`

interface Tried {
  readonly id: string
  /** Null: it matches. */
  readonly why: string | null
}

/** Makes a connection's filter of rows, and tries it on requests of its source before it is saved. */
export const TryFilter = ({ connection }: { readonly connection: Row<"Connection"> }) => {
  const { client } = useSession()
  const path = { params: { path: { id: connection.id } } }
  const [text, setText] = useState(() => JSON.stringify(conditionsOf(connection.rules), null, 2))
  const [target, setTarget] = useState<(typeof targets)[number]>("body")
  const [member, setMember] = useState("")
  const [operator, setOperator] = useState<string>("$eq")
  const [value, setValue] = useState("")
  const conditions = (): Members => {
    const read = valueOf(text)
    if (typeof read !== "object" || read === null) throw new Error("The conditions are not a JSON object")
    return read as Members
  }
  const attempt = useMutation({
    mutationFn: async (): Promise<ReadonlyArray<Tried>> => {
      const filter = conditions()
      const { models } = await client.get("/requests", {
        params: { query: { source_id: [connection.source_id], from: "now-30d", limit: mostRequests } }
      })
      const tried: Array<Tried> = []
      for (let at = 0; at < models.length; at += together) {
        const some = models.slice(at, at + together).map(async ({ id }): Promise<Tried> => {
          const { explanation, matched } = await client.post("/filters/test", {
            body: { conditions: filter, request_id: id }
          })
          const fault = explanation.find((one) => !one.matched)
          return { id, why: matched ? null : fault === undefined ? "its conditions do not match" : sentenceOf(fault) }
        })
        tried.push(...(await Promise.all(some)))
      }
      return tried
    }
  })
  const others = attempt.data?.filter(({ why }) => why !== null) ?? []
  const add = () => {
    const condition = { [operator]: valueOf(value) }
    const steps = target === "path" || member === "" ? [] : target === "body" ? member.split(".") : [member]
    setText(JSON.stringify(withCondition(membersOf(valueOf(text)), [target, ...steps], condition), null, 2))
  }
  return (
    <Panel title="Filter">
      <div className="stack">
        {connection.rules.some((rule) => rule.type === "filter" && "filter_id" in rule) ? (
          <p className="notice">The rule uses a stored filter. Saving here gives it conditions of its own instead.</p>
        ) : null}
        <div className="bar">
          <select
            aria-label="Part of the request"
            value={target}
            onChange={(event) => setTarget(event.target.value as (typeof targets)[number])}
          >
            {targets.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          {target === "path" ? null : (
            <input
              aria-label="Member"
              className="short"
              value={member}
              placeholder={target === "body" ? "order.total" : "name"}
              onChange={(event) => setMember(event.target.value.trim())}
            />
          )}
          <select aria-label="Operator" value={operator} onChange={(event) => setOperator(event.target.value)}>
            {operators.map(([name, words]) => (
              <option key={name} value={name}>
                {words}
              </option>
            ))}
          </select>
          <input
            aria-label="Value"
            className="short"
            value={value}
            placeholder="100"
            onChange={(event) => setValue(event.target.value)}
          />
          <button type="button" disabled={value === ""} onClick={add}>
            Add the condition
          </button>
        </div>
        <div className="field">
          <label htmlFor="conditions">Conditions as JSON</label>
          <textarea
            id="conditions"
            className="mono"
            rows={Math.min(20, text.split("\n").length + 1)}
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
        <div className="bar">
          <button type="button" disabled={attempt.isPending} onClick={() => attempt.mutate()}>
            {attempt.isPending ? "Trying…" : `Try it on the last ${mostRequests} requests`}
          </button>
          <Action
            primary
            done="Saved"
            run={async () =>
              client.patch("/connections/{id}", {
                ...path,
                body: { rules: withFilter(connection.rules, conditions()) }
              })
            }
          >
            Save the filter
          </Action>
        </div>
        {attempt.isError ? (
          <p role="alert" className="notice bad">
            {messageOf(attempt.error)}
          </p>
        ) : null}
        {attempt.data === undefined ? null : (
          <div role="status">
            <p>
              {attempt.data.length - others.length} of {attempt.data.length} requests match.
            </p>
            <ul className="plain">
              {others.slice(0, 20).map(({ id, why }) => (
                <li key={id}>
                  <Link className="mono" to={`/requests/${id}`}>
                    {id}
                  </Link>{" "}
                  <bdi>{why}</bdi>
                </li>
              ))}
            </ul>
            {others.length > 20 ? <p className="muted">20 of {others.length} that do not match are shown.</p> : null}
          </div>
        )}
      </div>
    </Panel>
  )
}
