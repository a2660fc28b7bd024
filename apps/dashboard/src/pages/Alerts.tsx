import { Link } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Choice, useFilters } from "../parts/Filters.tsx"
import { Form, TextField, textOf } from "../parts/Form.tsx"
import { type Column, List } from "../parts/List.tsx"
import { Panel } from "../parts/Panel.tsx"
import { Settings } from "../parts/Settings.tsx"
import { wordsOf } from "../parts/Status.tsx"
import { Read } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"
import { OpenAlerts } from "./OpenAlerts.tsx"

type Alert = Row<"ChannelAlert">

const columns: ReadonlyArray<Column<Alert>> = [
  {
    title: "Status",
    width: "110px",
    cell: ({ acknowledged_at, status }) =>
      status === "resolved" ? (
        <span className="badge good">Resolved</span>
      ) : acknowledged_at === null ? (
        <span className="badge bad">Open</span>
      ) : (
        <span className="badge wait">Acknowledged</span>
      )
  },
  { title: "Source", width: "1fr", cell: ({ source_name }) => <bdi>{source_name}</bdi> },
  { title: "What", width: "1fr", cell: ({ code }) => wordsOf(code.replace(/^channel_/, "")) },
  { title: "Message", width: "2fr", cell: ({ message }) => <bdi>{message}</bdi> },
  { title: "Times", width: "50px", cell: ({ occurrences }) => occurrences.toLocaleString() },
  { title: "Since", width: "100px", cell: ({ first_seen_at }) => <Time at={first_seen_at} /> },
  { title: "Acknowledged", width: "110px", cell: ({ acknowledged_at }) => <Time at={acknowledged_at} /> },
  { title: "Resolved", width: "100px", cell: ({ resolved_at }) => <Time at={resolved_at} /> }
]

/** The chat's URL is a secret: it is written, and no answer has it. */
const Chat = ({ isSet }: { readonly isSet: boolean }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Panel title={isSet ? "Chat (set)" : "Chat (not set)"}>
      <div className="stack">
        <Form
          label={isSet ? "Replace the chat" : "Set the chat"}
          send={async (form) => {
            await client.patch("/sources/channel-settings", {
              body: { chat_webhook_url: textOf(form, "chat_webhook_url"), chat_enabled: true }
            })
            form.reset()
            await refresh()
          }}
        >
          <TextField
            name="chat_webhook_url"
            label="Incoming webhook of the chat"
            type="password"
            required
            help="An https URL of Slack, Mattermost, Google Chat, Discord or a similar chat. It is stored encrypted, and never shown."
          />
        </Form>
        {isSet ? (
          <div>
            <Action
              asks="Send nothing more to the chat?"
              run={() =>
                client.patch("/sources/channel-settings", { body: { chat_webhook_url: "", chat_enabled: false } })
              }
            >
              Remove the chat
            </Action>
          </div>
        ) : null}
      </div>
    </Panel>
  )
}

/** Alerts about channels, and how the team is told of them. */
export const Alerts = () => {
  const { client, team } = useSession()
  const { mayOwn } = useRole()
  const { status = "all" } = useFilters().search
  const query = { status: status as "active" | "resolved" | "all" }
  return (
    <>
      <header>
        <h1>Alerts</h1>
        <div className="filters">
          <Choice
            name="status"
            label="Status"
            values={[
              ["active", "Open"],
              ["resolved", "Resolved"]
            ]}
          />
        </div>
      </header>
      <OpenAlerts />
      <List
        label="Alerts"
        keys={["alerts", team, query]}
        columns={columns}
        to={({ source_id }) => `/channels/${source_id}`}
        read={(cursor) =>
          client.get("/sources/channel-alerts", {
            params: { query: { ...query, limit: 100, ...(cursor === null ? {} : { cursor }) } }
          })
        }
        empty={
          <p>
            There is no alert. The gateway opens one when a <Link to="/channels">channel</Link> does not work, and
            resolves it when the channel works again.
          </p>
        }
      />
      <Read name="alert settings" read={() => client.get("/sources/channel-settings")}>
        {({ chat_configured, chat_last_error, updated_at: _updatedAt, ...settings }) => (
          <>
            {chat_last_error === null ? null : (
              <div className="notice bad">
                The chat refused the last alert: <bdi>{chat_last_error}</bdi>
              </div>
            )}
            <Settings
              title="How you are told"
              value={settings}
              save={(body) => client.patch("/sources/channel-settings", { body })}
            />
            {mayOwn ? <Chat key={String(chat_configured)} isSet={chat_configured} /> : null}
          </>
        )}
      </Read>
    </>
  )
}
