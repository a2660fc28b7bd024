import { asana } from "./asana.ts"
import { awsSns } from "./awsSns.ts"
import { bitbucket } from "./bitbucket.ts"
import { buildkite } from "./buildkite.ts"
import { calendly } from "./calendly.ts"
import { chargebee } from "./chargebee.ts"
import { checkoutCom } from "./checkoutCom.ts"
import { circleci } from "./circleci.ts"
import { clerk } from "./clerk.ts"
import { coinbaseCommerce } from "./coinbaseCommerce.ts"
import { cursor } from "./cursor.ts"
import { deepgram } from "./deepgram.ts"
import { discord } from "./discord.ts"
import { discordEvents } from "./discordEvents.ts"
import { docusign } from "./docusign.ts"
import { dropbox } from "./dropbox.ts"
import { elevenlabs } from "./elevenlabs.ts"
import { fusionauth } from "./fusionauth.ts"
import { github } from "./github.ts"
import { gitlab } from "./gitlab.ts"
import { gocardless } from "./gocardless.ts"
import { heroku } from "./heroku.ts"
import { hubspot } from "./hubspot.ts"
import { intercom } from "./intercom.ts"
import { launchdarkly } from "./launchdarkly.ts"
import { lemonSqueezy } from "./lemonSqueezy.ts"
import { line } from "./line.ts"
import { linear } from "./linear.ts"
import { mailchimp } from "./mailchimp.ts"
import { mailgun } from "./mailgun.ts"
import { meta } from "./meta.ts"
import { microsoftGraph } from "./microsoftGraph.ts"
import { microsoftTeams } from "./microsoftTeams.ts"
import { mux } from "./mux.ts"
import { notion } from "./notion.ts"
import { okta } from "./okta.ts"
import { openai } from "./openai.ts"
import { paddle } from "./paddle.ts"
import { pagerduty } from "./pagerduty.ts"
import { paypal } from "./paypal.ts"
import { paystack } from "./paystack.ts"
import { postmark } from "./postmark.ts"
import { razorpay } from "./razorpay.ts"
import { replicate } from "./replicate.ts"
import { resend } from "./resend.ts"
import { sendgrid } from "./sendgrid.ts"
import { sentry } from "./sentry.ts"
import { shopify } from "./shopify.ts"
import { slack } from "./slack.ts"
import { square } from "./square.ts"
import { standard } from "./standard.ts"
import { standardWebhooks } from "./standardWebhooks.ts"
import { stripe } from "./stripe.ts"
import { svix } from "./svix.ts"
import { telegram } from "./telegram.ts"
import { trello } from "./trello.ts"
import { twilio } from "./twilio.ts"
import { twitch } from "./twitch.ts"
import { typeform } from "./typeform.ts"
import { vercel } from "./vercel.ts"
import { webex } from "./webex.ts"
import { webflow } from "./webflow.ts"
import { whatsapp } from "./whatsapp.ts"
import { wooCommerce } from "./wooCommerce.ts"
import { workos } from "./workos.ts"
import { xero } from "./xero.ts"
import { zendesk } from "./zendesk.ts"
import { zoom } from "./zoom.ts"
import type { Introduction } from "./Introduction.ts"

/**
 * The introduction of each type in the provider table. A row of the table can only have types that are introduced here. A new type is a file,
 * and a line here.
 */
export const introductions = {
  STRIPE: stripe,
  GITHUB: github,
  SHOPIFY: shopify,
  SLACK: slack,
  TWILIO: twilio,
  BITBUCKET: bitbucket,
  META: meta,
  WHATSAPP: whatsapp,
  INTERCOM: intercom,
  CURSOR: cursor,
  NOTION: notion,
  CIRCLECI: circleci,
  PAGERDUTY: pagerduty,
  DROPBOX: dropbox,
  RAZORPAY: razorpay,
  COINBASE_COMMERCE: coinbaseCommerce,
  LEMON_SQUEEZY: lemonSqueezy,
  ASANA: asana,
  SENTRY: sentry,
  GOCARDLESS: gocardless,
  LAUNCHDARKLY: launchdarkly,
  CHECKOUT_COM: checkoutCom,
  PAYSTACK: paystack,
  VERCEL: vercel,
  WEBEX: webex,
  LINE: line,
  DOCUSIGN: docusign,
  TYPEFORM: typeform,
  XERO: xero,
  WOO_COMMERCE: wooCommerce,
  HEROKU: heroku,
  SQUARE: square,
  TRELLO: trello,
  MICROSOFT_TEAMS: microsoftTeams,
  CALENDLY: calendly,
  MUX: mux,
  WORKOS: workos,
  ELEVENLABS: elevenlabs,
  PADDLE: paddle,
  BUILDKITE: buildkite,
  SVIX: svix,
  CLERK: clerk,
  RESEND: resend,
  STANDARD: standard,
  STANDARD_WEBHOOKS: standardWebhooks,
  REPLICATE: replicate,
  OPENAI: openai,
  ZOOM: zoom,
  WEBFLOW: webflow,
  ZENDESK: zendesk,
  HUBSPOT: hubspot,
  TWITCH: twitch,
  LINEAR: linear,
  GITLAB: gitlab,
  TELEGRAM: telegram,
  DEEPGRAM: deepgram,
  OKTA: okta,
  POSTMARK: postmark,
  CHARGEBEE: chargebee,
  DISCORD: discord,
  DISCORD_EVENTS: discordEvents,
  SENDGRID: sendgrid,
  PAYPAL: paypal,
  MAILGUN: mailgun,
  AWS_SNS: awsSns,
  FUSIONAUTH: fusionauth,
  MAILCHIMP: mailchimp,
  MICROSOFT_GRAPH: microsoftGraph
} as const satisfies Readonly<Record<string, Introduction>>

/** A type in the provider table. */
export type ProviderType = keyof typeof introductions
