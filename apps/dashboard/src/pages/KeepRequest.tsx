import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { pageOfShare, type Row } from "../gateway.ts"
import { ChoiceField, Form, Secret, TextField, textOf } from "../parts/Form.tsx"
import { Panel } from "../parts/Panel.tsx"
import { useRefresh, useSession } from "../session.ts"

const times = [
  ["3600", "An hour"],
  ["86400", "A day"],
  ["604800", "A week"]
] as const

const Share = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const [share, setShare] = useState<Row<"Share"> | null>(null)
  if (share !== null) {
    return (
      <div className="stack">
        <Secret label="Link" value={pageOfShare(share.token)}>
          Anybody who has this link can read the request. It is shown only now.
        </Secret>
        <Secret label="Link for programs" value={share.url}>
          Programs read the same as JSON.
        </Secret>
        <p>
          You can end it under <Link to="/shares">shares</Link>.
        </p>
      </div>
    )
  }
  return (
    <Form
      call="POST /requests/{id}/share"
      label="Make the link"
      send={async (form) => {
        const title = textOf(form, "title")
        const keys = textOf(form, "redact_keys")
          .split(",")
          .map((key) => key.trim())
          .filter((key) => key !== "")
        const made = await client.post("/requests/{id}/share", {
          params: { path: { id } },
          body: {
            ...(title === "" ? {} : { title }),
            expires_in_seconds: Number(textOf(form, "expires")),
            include_body: textOf(form, "include_body") === "yes",
            ...(keys.length === 0 ? {} : { redact_keys: keys })
          }
        })
        await refresh()
        setShare(made)
      }}
    >
      <TextField name="title" label="Title" maxLength={200} placeholder="Why did this order fail?" />
      <ChoiceField name="expires" label="Ends after" choices={times} defaultValue="86400" />
      <ChoiceField
        name="include_body"
        label="Body"
        choices={[
          ["yes", "Show it"],
          ["no", "Leave it out"]
        ]}
      />
      <TextField
        name="redact_keys"
        label="Members to leave out"
        placeholder="email, phone"
        help="Names of members and headers, separated by commas. The gateway leaves out the secrets that it recognizes; name those that only you know."
      />
    </Form>
  )
}

const Keep = ({ id }: { readonly id: string }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  const [fixture, setFixture] = useState<string | null>(null)
  if (fixture !== null) {
    return (
      <p role="status">
        It is kept. <Link to={`/fixtures/${fixture}`}>Open the fixture</Link>
      </p>
    )
  }
  return (
    <Form
      call="POST /request-fixtures"
      label="Keep it"
      send={async (form) => {
        const description = textOf(form, "description")
        const made = await client.post("/request-fixtures", {
          body: { request_id: id, name: textOf(form, "name"), ...(description === "" ? {} : { description }) }
        })
        await refresh()
        setFixture(made.id)
      }}
    >
      <TextField name="name" label="Name" required maxLength={155} placeholder="An order without lines" />
      <TextField name="description" label="Description" maxLength={1_000} />
    </Form>
  )
}

/** What a request becomes: a link that anybody can open, or a fixture that stays. */
export const KeepRequest = ({ as, id }: { readonly id: string; readonly as: "share" | "fixture" }) =>
  as === "share" ? (
    <Panel title="Share this request">
      <Share id={id} />
    </Panel>
  ) : (
    <Panel title="Keep this request as a fixture">
      <Keep id={id} />
    </Panel>
  )
