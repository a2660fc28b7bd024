import { useNavigate } from "@tanstack/react-router"
import { messageOf, type Row } from "../../gateway.ts"
import { exactJson } from "../../json.ts"
import { ChoiceField, Form, TextArea, TextField, textOf } from "../../parts/Form.tsx"
import { headersIn } from "../../parts/HeaderLines.ts"
import { useChoices } from "../../parts/Named.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { useRefresh, useSession } from "../../session.ts"

interface Of {
  readonly workflow: Row<"Workflow">
}

/** The body of a run: JSON, with all digits of its numbers. Null for an empty text. */
const bodyIn = (text: string): unknown => {
  if (text === "") return null
  try {
    return exactJson.parse(text)
  } catch (error) {
    throw new Error(`The body is not valid JSON: ${messageOf(error)}`, { cause: error })
  }
}

/** Begins a run without a request: its steps see what is written here. */
export const BeginRun = ({ workflow: { id, status } }: Of) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const refresh = useRefresh()
  return (
    <Panel title="Run it now">
      {status === "paused" ? <p>The workflow is paused: the run begins when you activate it.</p> : null}
      {status === "draft" ? <p>The workflow is a draft: activate it first.</p> : null}
      <Form
        call="POST /workflows/{id}/runs"
        label="Begin the run"
        send={async (form) => {
          const headers = headersIn(textOf(form, "headers"))
          const query = textOf(form, "query")
          const run = await client.post("/workflows/{id}/runs", {
            params: { path: { id } },
            body: {
              trigger: {
                body: bodyIn(textOf(form, "body")),
                ...(Object.keys(headers).length === 0 ? {} : { headers }),
                ...(query === "" ? {} : { query })
              }
            }
          })
          await refresh()
          await navigate({ to: `/workflows/${id}/runs/${run.id}` })
        }}
      >
        <TextArea
          name="body"
          label="Body as JSON"
          rows={8}
          help="The steps read it as trigger.body. All steps run, and everything is really sent; the editor has a test that sends nothing."
        />
        <TextArea name="headers" label="Headers" rows={2} help="One in each line: content-type: application/json" />
        <TextField name="query" label="Query" placeholder="page=2" />
      </Form>
    </Panel>
  )
}

/** Makes a workflow of its own with the same steps, run label and triggers. */
export const CopyWorkflow = ({ workflow: { id, name, source_id } }: Of) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const refresh = useRefresh()
  const sources = useChoices("sources")
  return (
    <Panel title="Copy it">
      <Form
        call="POST /workflows/{id}/clone"
        label="Make the copy"
        send={async (form) => {
          const source = textOf(form, "source_id")
          const copy = await client.post("/workflows/{id}/clone", {
            params: { path: { id } },
            body: { name: textOf(form, "name"), ...(source === "" ? {} : { source_id: source }) }
          })
          await refresh()
          await navigate({ to: `/workflows/${copy.id}` })
        }}
      >
        <TextField
          name="name"
          label="Name"
          required
          maxLength={155}
          defaultValue={`Copy of ${name}`.slice(0, 155)}
          help="The copy is a draft: it has no runs until you activate it."
        />
        <ChoiceField
          name="source_id"
          label="Source"
          choices={[["", "The same"], ...sources.filter(([source]) => source !== source_id)]}
        />
      </Form>
    </Panel>
  )
}
