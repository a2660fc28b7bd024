import { slackHandshake, twitchHandshake, zoomHandshake } from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import type { SignatureScheme, TimestampRule } from "../SignatureScheme.ts"
import { answer, signedBy } from "./settings.ts"

/** The tolerance of Standard Webhooks, Stripe and Slack, and of all providers here that document none. */
const usual = 300

const within = (
  from: TimestampRule["from"],
  unit: TimestampRule["unit"] = "seconds",
  toleranceSeconds = usual
): TimestampRule => ({ from, unit, toleranceSeconds })

const plain: Omit<SignatureScheme, "header" | "content" | "timestamp"> = {
  separator: null,
  prefix: "",
  algorithm: "sha256",
  encoding: "hex",
  secret: "utf8"
}

/** `t=1700000000,v1=…` in one header, over `{t}.{body}`. */
const pairs = (header: string, rest: Partial<SignatureScheme> = {}): readonly [SignatureScheme] => [
  {
    ...plain,
    header,
    separator: ",",
    prefix: "v1=",
    content: "{timestamp}.{body}",
    timestamp: within({ itemPrefix: "t=" }),
    ...rest
  }
]

/** Standard Webhooks, with its own header names or Svix's. */
const standard = (name: "webhook" | "svix", secret: SignatureScheme["secret"]): SignatureScheme => ({
  ...plain,
  header: `${name}-signature`,
  separator: " ",
  prefix: "v1,",
  encoding: "base64",
  content: `{header:${name}-id}.{timestamp}.{body}`,
  timestamp: within({ header: `${name}-timestamp` }),
  secret
})

/** Providers that sign a timestamp with the request, so that a recorded request is soon worthless. */
export const timedProviders: ReadonlyArray<Provider> = [
  signedBy(["STRIPE"], pairs("stripe-signature")),
  signedBy(["CALENDLY"], pairs("calendly-webhook-signature")),
  signedBy(["MUX"], pairs("mux-signature"), { answer: answer("2xx", 5) }),
  signedBy(["WORKOS"], pairs("workos-signature", { timestamp: within({ itemPrefix: "t=" }, "milliseconds") })),
  // ElevenLabs' own clients allow 30 minutes, according to published descriptions.
  signedBy(
    ["ELEVENLABS"],
    pairs("elevenlabs-signature", { prefix: "v0=", timestamp: within({ itemPrefix: "t=" }, "seconds", 1800) }),
    { answer: answer("200", null) }
  ),
  signedBy(
    ["PADDLE"],
    pairs("paddle-signature", {
      separator: ";",
      prefix: "h1=",
      content: "{timestamp}:{body}",
      timestamp: within({ itemPrefix: "ts=" })
    }),
    { answer: answer("200", 5) }
  ),
  // Each webhook is configured to send either a signature or the token itself.
  signedBy(
    ["BUILDKITE"],
    pairs("x-buildkite-signature", { prefix: "signature=", timestamp: within({ itemPrefix: "timestamp=" }) }),
    {
      verification: {
        kind: "scheme",
        schemes: pairs("x-buildkite-signature", {
          prefix: "signature=",
          timestamp: within({ itemPrefix: "timestamp=" })
        }),
        tokenHeader: "x-buildkite-token"
      }
    }
  ),

  // Svix's own verifiers accept either set of names, and read the secret as base64 with or without whsec_.
  signedBy(["SVIX", "CLERK", "RESEND"], [standard("svix", "base64"), standard("webhook", "base64")], {
    answer: answer("2xx", 15)
  }),
  signedBy(["STANDARD", "STANDARD_WEBHOOKS", "REPLICATE"], [standard("webhook", "base64")]),
  // OpenAI's verifier treats a secret without whsec_ as text.
  signedBy(["OPENAI"], [standard("webhook", "whsec")]),

  signedBy(
    ["SLACK"],
    [
      {
        ...plain,
        header: "x-slack-signature",
        prefix: "v0=",
        content: "v0:{timestamp}:{body}",
        timestamp: within({ header: "x-slack-request-timestamp" })
      }
    ],
    { answer: answer("2xx", 3, "empty for forms"), handshake: slackHandshake }
  ),
  signedBy(
    ["ZOOM"],
    [
      {
        ...plain,
        header: "x-zm-signature",
        prefix: "v0=",
        content: "v0:{timestamp}:{body}",
        // Retries come 5, 25 and 85 minutes later, and it is not documented that they are signed anew.
        timestamp: within({ header: "x-zm-request-timestamp" }, "seconds", 5400)
      }
    ],
    { answer: answer("200 or 204", 3), handshake: zoomHandshake }
  ),
  signedBy(
    ["WEBFLOW"],
    [
      {
        ...plain,
        header: "x-webflow-signature",
        content: "{timestamp}:{body}",
        timestamp: within({ header: "x-webflow-timestamp" }, "milliseconds")
      }
    ],
    { answer: answer("200", null) }
  ),
  signedBy(
    ["ZENDESK"],
    [
      {
        ...plain,
        header: "x-zendesk-webhook-signature",
        encoding: "base64",
        content: "{timestamp}{body}",
        timestamp: within({ header: "x-zendesk-webhook-signature-timestamp" }, "rfc3339")
      }
    ],
    { answer: answer("2xx", 12) }
  ),
  signedBy(
    ["HUBSPOT"],
    [
      {
        ...plain,
        header: "x-hubspot-signature-v3",
        encoding: "base64",
        content: "{method}{decodedUrl}{body}{timestamp}",
        timestamp: within({ header: "x-hubspot-request-timestamp" }, "milliseconds")
      }
    ],
    { answer: answer("2xx", 5) }
  ),
  // Twitch documents 10 minutes.
  signedBy(
    ["TWITCH"],
    [
      {
        ...plain,
        header: "twitch-eventsub-message-signature",
        prefix: "sha256=",
        content: "{header:twitch-eventsub-message-id}{timestamp}{body}",
        timestamp: within({ header: "twitch-eventsub-message-timestamp" }, "rfc3339", 600)
      }
    ],
    { handshake: twitchHandshake }
  ),
  // The timestamp is a member of the signed body. Linear documents one minute.
  signedBy(
    ["LINEAR"],
    [
      {
        ...plain,
        header: "linear-signature",
        content: "{body}",
        timestamp: within({ bodyMember: "webhookTimestamp" }, "milliseconds", 60)
      }
    ],
    { answer: answer("200", 5) }
  )
]
