import { connector, judgeStatus } from "./Connector.ts"
import { forward, signedBy } from "./HttpDelivery.ts"
import { Schema } from "effect"
import { tokenAuths } from "@tidegate/outbound-auth/types/OAuth"
import { concurrency, forwarding, forwardsPath, HttpUrl, needed, pacing } from "./Settings.ts"

/** Forwards requests to a URL. */
export const http = connector({
  type: "HTTP",
  description: "Delivers to a URL.",
  settings: {
    url: needed(
      HttpUrl(4096).annotate({
        description: "Where to; without a fragment, a user name or a password",
        examples: ["https://api.example.com/hooks"]
      }),
      "an absolute http or https URL"
    ),
    ...forwarding,
    ...pacing,
    ...concurrency
  },
  none: { path: Schema.Null.annotate({ message: "is for MOCK_API destinations; write it into config.url" }) },
  auths: [
    "NO_AUTH",
    "SERVICE_SIGNATURE",
    "CUSTOM_HEADER",
    "API_KEY_QUERY",
    "HTTP_MESSAGE_SIGNATURE",
    "SIGNED_JWT",
    ...tokenAuths
  ],
  leadsTo: ({ url }) => new URL(url).origin,
  credentials: "forward",
  carriesPath: forwardsPath,
  example: { name: "orders-api", type: "HTTP", config: { url: "https://api.example.com/hooks" } },
  open: (settings, auth) => ({
    kind: "http",
    prepare: forward(settings, auth),
    judge: judgeStatus,
    ...(auth.sign === undefined ? {} : { complete: signedBy(auth.sign) })
  })
})
