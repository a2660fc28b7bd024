import { useState } from "react"
import type { Row } from "../gateway.ts"
import { Form, SwitchField, TextField, textOf } from "../parts/Form.tsx"
import { OnlyOwners } from "../parts/OnlyOwners.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

type Kept = Row<"TeamRetention">

/** The two times, in the order in which their data is deleted. */
const kinds = [
  {
    name: "payload_days",
    most: "most_payload_days",
    label: "Days to keep payloads",
    what: "Bodies, headers, queries, answers and logs. A request without them is still listed, but cannot be replayed."
  },
  {
    name: "record_days",
    most: "most_record_days",
    label: "Days to keep records",
    what: "Requests, events, attempts and runs. They stay at least as long as payloads."
  }
] as const
type Name = (typeof kinds)[number]["name"]

const daysOf = (count: number): string => `${count.toLocaleString()} ${count === 1 ? "day" : "days"}`

const When = () => (
  <p className="muted">
    Whole days (UTC) are deleted once an hour, so everything stays for up to one day longer. A day in which something
    waits for its delivery stays for at most 7 days more. Fixtures and shares are copies, which stay:{" "}
    <a href="../docs/guides/retention.md">how long things are kept</a>.
  </p>
)

const Change = ({ retention }: { readonly retention: Kept }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const [written, setWritten] = useState<Readonly<Record<Name, string>>>({
    payload_days: String(retention.payload_days),
    record_days: String(retention.record_days)
  })
  /** Empty: what the operator has set. */
  const asked = (name: Name, most: number): number => (written[name] === "" ? most : Number(written[name]))
  const isShorter = kinds.some(({ most, name }) => asked(name, retention[most]) < retention[name])
  return (
    <Form
      call="PATCH /team"
      label="Save the retention"
      done="Saved"
      send={async (form) => {
        // A value that the reader has not changed is not sent, because the operator may let a team keep data for longer than others.
        const changes = kinds.flatMap(({ name }) => {
          const text = textOf(form, `retention.${name}`)
          return text === String(retention[name]) ? [] : [[name, text === "" ? null : Number(text)] as const]
        })
        await client.patch("/team", { body: { retention: Object.fromEntries(changes) } })
        await refresh()
      }}
    >
      {kinds.map(({ label, most, name, what }) => (
        <TextField
          key={name}
          name={`retention.${name}`}
          label={label}
          type="number"
          min={1}
          max={Math.max(retention[most], retention[name])}
          defaultValue={String(retention[name])}
          change={(value) => setWritten((before) => ({ ...before, [name]: value }))}
          help={`${what} From 1 to ${retention[most].toLocaleString()}, which the operator allows at most; empty for the most.`}
        />
      ))}
      {isShorter ? (
        <SwitchField
          name="agree_retention"
          label="What is older is deleted within the next hours, and cannot be restored"
          isOn={false}
          required
        />
      ) : null}
    </Form>
  )
}

/** How long the team keeps its data. Members see it, and owners change it. */
export const Retention = ({ retention }: { readonly retention: Kept }) => {
  const { mayOwn } = useRole()
  return (
    <Panel title="Retention">
      <div className="stack">
        {mayOwn ? (
          <Change retention={retention} />
        ) : (
          <Facts of={kinds.map(({ label, name }) => [label, daysOf(retention[name])] as const)} />
        )}
        <When />
        <OnlyOwners may="change how long data is kept" />
      </div>
    </Panel>
  )
}
