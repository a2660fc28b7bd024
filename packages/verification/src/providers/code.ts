import type { Provider } from "../Provider.ts"
import { discordEvents, discordInteractions } from "./discord.ts"
import { fusionauth } from "./fusionauth.ts"
import { mailgun } from "./mailgun.ts"
import { mandrill } from "./mandrill.ts"
import { microsoftGraph } from "./microsoftGraph.ts"
import { paypal } from "./paypal.ts"
import { sendgrid } from "./sendgrid.ts"
import { sns } from "./sns.ts"
import { twilio } from "./twilio.ts"

/** Providers that are verified by code, because a row of data cannot describe them. */
export const codeProviders: ReadonlyArray<Provider> = [
  twilio,
  discordInteractions,
  discordEvents,
  sendgrid,
  paypal,
  mailgun,
  sns,
  fusionauth,
  mandrill,
  microsoftGraph
]
