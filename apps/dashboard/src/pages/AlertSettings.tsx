import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { checkedOf, Form, linesOf, SwitchField, TextArea, TextField, textOf } from "../parts/Form.tsx"
import { Panel } from "../parts/Panel.tsx"
import { SettingsToRead } from "../parts/Settings.tsx"
import { Read } from "../parts/Table.tsx"
import { useRefresh, useRole, useSession } from "../session.ts"

/** The chat's URL is a secret: it can be written, and no answer contains it. */
const Chat = ({ isSet }: { readonly isSet: boolean }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Panel title={isSet ? "Chat (set)" : "Chat (not set)"}>
      <div className="stack">
        <Form
          call="PATCH /sources/channel-settings"
          label={isSet ? "Replace the chat" : "Set the chat"}
          done="Stored"
          send={async (form) => {
            await client.patch("/sources/channel-settings", {
              // A chat that is replaced stays switched on or off, as the form above says.
              body: { chat_webhook_url: textOf(form, "chat_webhook_url"), ...(isSet ? {} : { chat_enabled: true }) }
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
              call="PATCH /sources/channel-settings"
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

const Told = ({ settings }: { readonly settings: Row<"ChannelSettings"> }) => {
  const { client } = useSession()
  const refresh = useRefresh()
  return (
    <Panel title="How you are told">
      <Form
        call="PATCH /sources/channel-settings"
        label="Save"
        done="Saved"
        send={async (form) => {
          const isOn = (name: string) => checkedOf(form, name).length > 0
          await client.patch("/sources/channel-settings", {
            body: {
              email_enabled: isOn("email_enabled"),
              email_recipients: linesOf(form, "email_recipients"),
              chat_enabled: isOn("chat_enabled"),
              cooldown_minutes: Number(textOf(form, "cooldown_minutes")),
              silence_alert_enabled: isOn("silence_alert_enabled"),
              silence_alert_hours: Number(textOf(form, "silence_alert_hours"))
            }
          })
          await refresh()
        }}
      >
        <SwitchField name="email_enabled" label="Send alerts by e-mail" isOn={settings.email_enabled} />
        <TextArea
          name="email_recipients"
          label="Who gets them"
          isCode={false}
          rows={Math.min(10, settings.email_recipients.length + 2)}
          defaultValue={settings.email_recipients.join("\n")}
          help="One address in each line, at most 10. Empty: the first ten owners of the team."
        />
        <SwitchField
          name="chat_enabled"
          label="Send alerts to the chat"
          isOn={settings.chat_enabled}
          help={settings.chat_configured ? undefined : "Set the chat below first."}
        />
        <TextField
          name="cooldown_minutes"
          label="Minutes between two messages about one alert"
          type="number"
          required
          min={5}
          max={10_080}
          defaultValue={String(settings.cooldown_minutes)}
          help="From 5 to 10,080, which is a week. Each further reminder waits twice as long, up to a day."
        />
        <SwitchField
          name="silence_alert_enabled"
          label="Check channels that get no notifications"
          isOn={settings.silence_alert_enabled}
          help="An alert opens if a poll then finds what was missed."
        />
        <TextField
          name="silence_alert_hours"
          label="Hours without a notification until then"
          type="number"
          required
          min={1}
          max={720}
          defaultValue={String(settings.silence_alert_hours)}
          help="From 1 to 720, which is 30 days."
        />
      </Form>
    </Panel>
  )
}

/** How the team is told of alerts. Members see it, and owners change it. */
export const AlertSettings = () => {
  const { client } = useSession()
  const { mayOwn } = useRole()
  return (
    <Read name="alert settings" read={() => client.get("/sources/channel-settings")}>
      {(settings) => {
        const { chat_configured, chat_last_error, updated_at: _updatedAt, ...shown } = settings
        return (
          <>
            {chat_last_error === null ? null : (
              <div className="notice bad">
                The chat refused the last alert: <bdi>{chat_last_error}</bdi>
              </div>
            )}
            {mayOwn ? (
              <>
                {/* Setting and removing the chat changes the form's own switch, too. */}
                <Told key={`told ${chat_configured}`} settings={settings} />
                <Chat key={`chat ${chat_configured}`} isSet={chat_configured} />
              </>
            ) : (
              <SettingsToRead title="How you are told" value={shown} />
            )}
          </>
        )
      }}
    </Read>
  )
}
