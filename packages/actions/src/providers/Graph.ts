import { needed, setting, text } from "@tidegate/connectors/Settings"
import { accountRequest, pathOf } from "../AccountRequest.ts"
import { account } from "../AuthModes.ts"
import { calling, type Provider } from "../Provider.ts"

const key = "graph"

export const graph: Provider = {
  key,
  name: "Microsoft 365",
  description: "Reads and sends mail with a provider account.",
  icon_key: "mail",
  manifest_version: "1.0.0",
  auth: [account],
  actions: [
    calling({
      key: "get_message",
      name: "Get a message",
      description: "Gets a message of the account's mailbox.",
      category: "mail",
      version: "1.0.0",
      inputs: { message_id: needed(text, "the message's id") },
      output: { type: "object", properties: { data: { description: "The message" } }, required: ["data"] },
      primary_output: "data",
      sample: { inputs: { message_id: "AAMk1" }, output: { data: { id: "AAMk1", subject: "Hello" } } },
      rate_limit: null,
      call: ({ message_id }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "GET", path: pathOf(["v1.0", "me", "messages", message_id]), body: null },
          (data) => ({ data })
        )
    }),
    calling({
      key: "send_mail",
      name: "Send a message",
      description: "Sends a message from the account's mailbox. The account needs the scope Mail.Send.",
      category: "mail",
      version: "1.0.0",
      inputs: {
        to: needed(text, "the address that gets it"),
        subject: needed(text, "the subject"),
        text: setting(text.annotate({ description: "The message" }), "")
      },
      output: { type: "object", properties: { sent: { type: "boolean" } }, required: ["sent"] },
      primary_output: "sent",
      sample: { inputs: { to: "ada@example.com", subject: "Hello", text: "Hi" }, output: { sent: true } },
      rate_limit: null,
      call: ({ subject, text, to }, credentials) => {
        const toRecipients = [{ emailAddress: { address: to } }]
        const message = { subject, body: { contentType: "Text", content: text ?? "" }, toRecipients }
        return accountRequest(
          key,
          credentials,
          { method: "POST", path: pathOf(["v1.0", "me", "sendMail"]), body: { message } },
          () => ({ sent: true })
        )
      }
    })
  ]
}
