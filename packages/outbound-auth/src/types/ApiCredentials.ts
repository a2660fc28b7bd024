import { HeaderSecret, Identifier } from "@tidegate/model/AuthSettings"
import { Schema } from "effect"
import { authType } from "./OutboundAuthType.ts"

/** Credentials of third-party APIs. */

const ascii = Schema.makeFilter(
  (value: string) => /^[\x21-\x7e]+$/.test(value) || "must be printable ASCII without spaces",
  {
    toJsonSchema: () => ({ minLength: 1, pattern: String.raw`^[\x21-\x7e]+$` })
  }
)

const Token = HeaderSecret.check(ascii).annotate({
  description: "Encrypted at rest, masked on read; writing the mask back keeps it"
})

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` }, signs: false })

export const emailApiKey = authType({
  type: "EMAIL_API_KEY",
  description: "The key of an e-mail API",
  settings: { api_key: Token },
  aliases: {},
  readable: [],
  compile: ({ api_key }) => bearer(api_key)
})

export const chatBotToken = authType({
  type: "CHAT_BOT_TOKEN",
  description: "The token of a bot",
  settings: { bot_token: Token },
  aliases: {},
  readable: [],
  compile: ({ bot_token }) => bearer(bot_token)
})

export const messagingAuthToken = authType({
  type: "MESSAGING_AUTH_TOKEN",
  description: "The account of a messaging API and its token",
  settings: {
    account_sid: Identifier.check(
      Schema.isPattern(/^[A-Za-z0-9]{1,64}$/, { message: "must be at most 64 letters and digits" })
    ),
    auth_token: Token
  },
  aliases: {},
  readable: ["account_sid"],
  compile: ({ account_sid, auth_token }) => ({
    headers: { authorization: `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString("base64")}` },
    signs: false
  })
})
